"""What overrides make of a configuration, and which of them it can bear.

A value that the file has no room for, as when an arm that it weighs is gone from it, is refused
when it is written; when the file changed afterwards, it is left out and said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cascade.errors import ConfigError, RequestError
from cascade.snapshot import Snapshot, pinned_to
from cascade.terms import Terms
from cascade.types import ChatRequest
from serving.overrides.store import DRAIN, EXPERIMENT, PIN, Override, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What of the file overrides can stand on.

    Attributes:
        tiers: names.
        experiments: by name, their terms in the file.
    """

    tiers: Sequence[str]
    experiments: Mapping[str, Terms]


def ground_of(snapshot: Snapshot) -> Ground:
    """Of a configuration as it was built."""
    terms = {name: each.terms for name, each in snapshot.experiments.items()}
    return Ground(tiers=list(snapshot.tiers), experiments=terms)


def check(ground: Ground, subject: str, value: Mapping[str, Any], state: State) -> None:
    """Refuse an override that cannot be.

    Args:
        ground: the file.
        subject: of the override.
        value: all of it, what was overridden before included.
        state: the other overrides in force.

    Raises:
        RequestError: naming what is wrong.
    """
    pinned, drained = pin_of(state), drains_of(state)
    if subject.startswith(EXPERIMENT):
        terms_under(ground, subject.removeprefix(EXPERIMENT), value)
    elif subject == PIN:
        tier = _tier(ground, value.get("tier"))
        if tier in drained:
            raise RequestError(f"{tier} is drained ({drained[tier].why}): end that first")
    else:
        tier = _tier(ground, subject.removeprefix(DRAIN))
        if tier == pinned:
            raise RequestError(f"everything is pinned to {tier}: end that first")
        if not set(ground.tiers) - drained.keys() - {tier}:
            raise RequestError(f"without {tier} no tier would be left")


def terms_under(ground: Ground, name: str, value: Mapping[str, Any]) -> Terms:
    """The terms of an experiment under an override's value.

    Raises:
        RequestError: there is no such experiment, or it cannot be so.
    """
    if name not in ground.experiments:
        known = ", ".join(ground.experiments) or "none"
        raise RequestError(f"there is no experiment {name!r}; there are: {known}", param="name")
    try:
        return ground.experiments[name].changed(value)
    except ConfigError as error:
        raise RequestError(f"{error.param}: {error.message}", param=error.param) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """What of the overrides in force the file has room for.

    Attributes:
        terms: by experiment that is overridden, its terms and the override's version.
        pin: to which tier everything goes, and the override's version.
        drained: by tier that nothing may go to, why.
        doubts: what had to be left out, and why.
    """

    terms: Mapping[str, tuple[Terms, int]]
    pin: tuple[str, int] | None
    drained: Mapping[str, str]
    doubts: Sequence[str]


def fitting(ground: Ground, state: State) -> Fitting:
    """What of the overrides in force the file has room for."""
    doubts: list[str] = []
    terms = _terms(ground, state, doubts)
    pin, tier = state.get(PIN), pin_of(state)
    if pin is not None and tier not in ground.tiers:
        doubts.append(_left_out(pin, f"there is no tier {tier!r}"))
        pin = None
    pinned = (str(tier), pin.version) if pin else None
    drained = _drained(ground, state, pinned and pinned[0], doubts)
    return Fitting(terms=terms, pin=pinned, drained=drained, doubts=tuple(doubts))


def applied(file: Snapshot, fit: Fitting) -> Snapshot:
    """The configuration under what it has room for.

    Args:
        file: the configuration as the file has it.
        fit: from `fitting`, on the ground of the same configuration.
    """
    under = {name: file.experiments[name].under(*terms) for name, terms in fit.terms.items()}
    pinned = None
    if fit.pin is not None:
        tier, version = fit.pin
        pinned = pinned_to(tier, name=f"pin:{tier}", version=version)
    return replace(
        file,
        experiments={**file.experiments, **under},
        pinned=pinned,
        drained=fit.drained,
        ruled_out=_Drained(file, fit.drained).ruled_out if fit.drained else file.ruled_out,
    )


def _terms(ground: Ground, state: State, doubts: list[str]) -> dict[str, tuple[Terms, int]]:
    found = {}
    for subject, override in state.items():
        if not subject.startswith(EXPERIMENT):
            continue
        name = subject.removeprefix(EXPERIMENT)
        try:
            file = terms_under(ground, name, {})
        except RequestError as error:
            doubts.append(_left_out(override, error.message))
            continue
        kept, faults = file.bearing(override.value or {})
        doubts += [_left_out(override, fault.message, fault.param) for fault in faults]
        if kept or not faults:
            found[name] = (file.changed(kept), override.version)
    return found


def _drained(ground: Ground, state: State, pinned: str | None, doubts: list[str]) -> dict[str, str]:
    drains, drained = drains_of(state), {}
    for tier, override in drains.items():
        if tier not in ground.tiers:
            doubts.append(_left_out(override, f"there is no tier {tier!r}"))
        elif tier == pinned:
            doubts.append(_left_out(override, f"everything is pinned to {tier}"))
        else:
            drained[tier] = f"is drained: {override.why}"
    if set(ground.tiers) - drained.keys():
        return drained
    doubts += [_left_out(drains[tier], "no tier would be left") for tier in drained]
    return {}


def pin_of(state: State) -> str | None:
    """The tier that everything is pinned to; None when nothing is."""
    value = state[PIN].value if PIN in state else None
    return value.get("tier") if value else None


def drains_of(state: State) -> dict[str, Override]:
    """By tier that is drained, the override."""
    return {s.removeprefix(DRAIN): each for s, each in state.items() if s.startswith(DRAIN)}


class _Drained:
    """What the file's rules leave out, and what is drained."""

    def __init__(self, file: Snapshot, drained: Mapping[str, str]) -> None:
        self._rules = file.ruled_out
        self._drained = drained

    def ruled_out(self, request: ChatRequest) -> Mapping[str, str]:
        return {**self._drained, **self._rules(request)}


def _tier(ground: Ground, name: object) -> str:
    if name not in ground.tiers:
        known = ", ".join(ground.tiers)
        raise RequestError(f"there is no tier {name!r}; there are: {known}", param="tier")
    return str(name)


def _left_out(override: Override, why: str, part: str | None = None) -> str:
    what = f"{part} of override" if part else "override"
    return f"{what} {override.version} of {override.subject} is not in force: {why}"
