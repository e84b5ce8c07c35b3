"""What there is to tell now: of the traffic, and of the experiments with what follows for them."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from serving.alerts.jumps import Hour, Jump, jump
from serving.alerts.log import Finding, put
from serving.alerts.traffic import RULES
from serving.overrides.stacking import layers
from serving.overrides.store import EXPERIMENT, OverrideConflictError, versions, writing
from serving.results import Trial, results
from serving.results.comparisons import Measured, checked, measure
from serving.results.guardrails import Breach, breaches
from serving.results.kept import Computed, keep, removed_before
from serving.results.period import current
from serving.results.shares import Shares

logger = logging.getLogger(__name__)

GUARDRAIL = "guardrail"
"""The kind of such a finding, and who turns an arm off in the history of the experiment."""


def of_traffic(
    now: Mapping[tuple[str, str], Hour], past: Mapping[tuple[str, str], Sequence[Hour]]
) -> Iterator[Finding]:
    """What is out of the ordinary in the last hour."""
    for (kind, subject), hour in now.items():
        found = jump(hour, past.get((kind, subject), ()), RULES[kind])
        if found is not None:
            yield Finding(
                kind=kind,
                subject=subject,
                message=_MESSAGES[kind](subject, found),
                details=asdict(found),
            )


def of_experiments(engine: Engine, trials: Iterable[Trial]) -> Iterator[Finding]:
    """Experiments with wrong shares. Arms beyond a guardrail are turned off, and that is kept.

    The results are kept for whoever asks for them next.
    """
    for trial in trials:
        version = versions(engine).get(f"{EXPERIMENT}{trial.name}", 0)
        began, removed = time.time(), removed_before(engine)
        now = current(engine, trial, began)
        measured = measure(engine, now)
        if now.until is None:  # else only one arm has a share: there is nothing to watch
            shares = checked(now, measured)
            if shares is not None and shares.broken:
                yield _unequal(trial, shares)
            turn_off(engine, now, breaches(engine, now, measured), version)
        _keep(engine, now, measured, began=began, removed=removed)


def _keep(engine: Engine, trial: Trial, measured: Measured, *, began: float, removed: int) -> None:
    """Compute the rest of the results and keep them.

    What of them cannot be had, as it takes the database too long, keeps no other experiment from
    being watched.
    """
    try:
        found = results(engine, trial, measured)
    except (DBAPIError, NoConnectionError) as error:
        first, *_ = str(error).splitlines() or [""]
        logger.info("results of %s cannot be had: %s", trial.name, first)
        return
    took = time.time() - began
    keep(engine, Computed(results=found, at=began, took=took, removed=removed))


def _unequal(trial: Trial, shares: Shares) -> Finding:
    counts = ", ".join(f"{arm} {units:,}" for arm, units in shares.units.items())
    return Finding(
        kind="sample_ratio",
        subject=trial.name,
        message=(
            f"experiment {trial.name}: its arms did not get their share of units "
            f"({counts}; p = {shares.p:.1g}): its results cannot be trusted"
        ),
        details=asdict(shares),
    )


def turn_off(engine: Engine, trial: Trial, found: Iterable[Breach], version: int) -> None:
    """Turn the arms off: they get no more units, and their units go to the other arms.

    An arm is never off without an alert that says so: both are written, or neither is. It is told
    each time, as it can only be found again after somebody turned it on again.

    What was changed while the requests were added up may be what mattered, so that another look
    decides then.
    """
    for breach in found:
        try:
            with writing(engine, f"{EXPERIMENT}{trial.name}", None, version) as turn:
                rows = layers(turn.standing(), {"weights": {breach.arm: 0}}, None)
                version = turn.write(rows, who=GUARDRAIL, why=breach.message)
                put(turn.connection, _beyond(trial, breach))
        except OverrideConflictError:
            return
        logger.warning(
            "alert: experiment %s: %s is turned off: %s", trial.name, breach.arm, breach.message
        )


def _beyond(trial: Trial, breach: Breach) -> Finding:
    return Finding(
        kind=GUARDRAIL,
        subject=f"{trial.name}/{breach.arm}",
        message=f"experiment {trial.name}: {breach.message}; it is turned off",
        details={**asdict(breach), "experiment": trial.name},
    )


def _silent(subject: str, found: Jump) -> str:
    return (
        f"judge {subject} had no answer to {found.now:.0%} of {found.number:,.0f} questions in the "
        f"last hour; usual is {found.usual:.1%}, the worst hour of the week had {found.worst:.1%}"
    )


def _escalates(subject: str, found: Jump) -> str:
    return (
        f"policy {subject} escalated {found.now:.0%} of {found.number:,.0f} requests in the last "
        f"hour; usual is {found.usual:.1%}, the most of the week was {found.worst:.1%}"
    )


def _costs(subject: str, found: Jump) -> str:
    return (
        f"a request by policy {subject} cost ${found.now:.3g} in the mean of the last hour; usual "
        f"is ${found.usual:.3g}, the most of the week was ${found.worst:.3g}"
    )


def _misses(subject: str, found: Jump) -> str:
    return (
        f"tier {subject} read {found.now:.0%} of its prompt tokens from a cache in the last hour; "
        f"usual is {found.usual:.1%}, the least of the week was {found.worst:.1%}"
    )


_MESSAGES = {
    "judge_silent": _silent,
    "escalation_rate": _escalates,
    "cost": _costs,
    "cache_hit_rate": _misses,
}
