"""The time that counts: since the shares of the arms last changed.

When a weight changes, units move between arms, and from then on the arms differ in when their units
came. So an experiment's results begin anew with every change of its weights. Who may come in at all
(the ramp, a start, an end) moves nobody between arms and begins nothing anew.

An arm that was turned off leaves the results as they were up to then, until there are two arms with
a share again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Engine

from serving.overrides.store import EXPERIMENT, Override, history
from serving.results.covariates import first_request
from serving.results.trial import Trial

SETTLE_SECONDS = 5.0
"""After a change, until every process follows it."""

_MOST_CHANGES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A time in which the shares of the arms were the same; None is open."""

    since: float | None
    until: float | None
    weights: Mapping[str, float]

    @property
    def compares(self) -> bool:
        """Whether at least two arms had a share."""
        return sum(weight > 0 for weight in self.weights.values()) > 1


def current(engine: Engine, trial: Trial, now: float, *, since: float | None = None) -> Trial:
    """The trial over the time that counts, with the weights of that time.

    Args:
        engine: of the audit database.
        trial: as the file has it.
        now: seconds since the epoch.
        since: count from then on, whatever changed since; None: from the last change.
    """
    made = history(engine, f"{EXPERIMENT}{trial.name}", _MOST_CHANGES)
    found = periods(reversed(made), trial.weights, now)
    last = next((each for each in reversed(found) if each.compares), found[-1])
    if since is not None:
        same = last.since is None or last.since <= since
        return replace(trial, since=since, weights=last.weights if same else {})
    with engine.connect() as connection:
        begun = last.since if last.since is not None else first_request(connection, trial)
    return replace(trial, since=begun, until=last.until, weights=last.weights)


def periods(made: Iterable[Override], weights: Mapping[str, float], now: float) -> list[Period]:
    """The times with the same shares, one after the other, the last of them open.

    Args:
        made: overrides of the experiment, the oldest first.
        weights: of the arms, as the file has them.
        now: seconds since the epoch.
    """
    known = list(made)
    found = [Period(since=None, until=None, weights=weights)]
    for at in _turns(known, now):
        changed = _weights_at(at, known, weights)
        before = found[-1]
        if _shares(changed) != _shares(before.weights):
            found[-1] = replace(before, until=at)
            found.append(Period(since=at + SETTLE_SECONDS, until=None, weights=changed))
    return found


def _turns(made: Sequence[Override], now: float) -> list[float]:
    """When something may have changed."""
    ends = (each.until for each in made if each.until is not None and each.until <= now)
    return sorted({each.created_at for each in made} | set(ends))


def _weights_at(
    at: float, made: Sequence[Override], weights: Mapping[str, float]
) -> Mapping[str, float]:
    in_force = [each for each in made if each.created_at <= at and not each.over(at)]
    value = (in_force[-1].value if in_force else None) or {}
    changed = value.get("weights") or {}
    return {arm: float(changed.get(arm, weight)) for arm, weight in weights.items()}


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values()) or 1.0
    return {arm: round(weight / total, 12) for arm, weight in weights.items()}
