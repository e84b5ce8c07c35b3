"""The policies that are replayed, by name: fitted on a table's fit rows where they have to be."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evals.frontier.cascades import Cascade, GainCascade
from evals.frontier.known import FrontierError, Known, complete, learn
from evals.frontier.replayed import (
    ORACLE,
    Always,
    Mixed,
    Ordered,
    Priced,
    Replayed,
    oracle,
)
from evals.frontier.sweep import Floats
from evals.frontier.utility import Utility
from evals.tables import OutcomeTable

ALWAYS: Final = "always:"
RANDOM: Final = "random"

Make = Callable[[Known, OutcomeTable], Replayed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """The policies that a table can play.

    Attributes:
        known: what the fit rows say.
        policies: by name, the baselines first.
        missing: by name, why a policy cannot be played.
    """

    known: Known
    policies: Mapping[str, Replayed]
    missing: Mapping[str, str]

    def __getitem__(self, name: str) -> Replayed:
        """The policy of that name.

        Raises:
            FrontierError: there is none, or the table lacks what it needs.
        """
        if name in self.policies:
            return self.policies[name]
        if name in self.missing:
            raise FrontierError(f"policy {name}: {self.missing[name]}")
        there = ", ".join(self.policies)
        raise FrontierError(f"there is no policy {name!r}; there are: {there}")


def replayed(table: OutcomeTable) -> Replays:
    """Every policy that this table can play, fitted on its fit rows.

    Raises:
        FrontierError: no row can be replayed, or there are no fit rows.
    """
    table = complete(table)
    known = learn(table)
    missing = {name: why for name, need in _NEEDS.items() if (why := need(known, table))}
    always = {
        f"{ALWAYS}{tier}": Always(name=f"{ALWAYS}{tier}", tier=at)
        for at, tier in enumerate(table.tiers)
    }
    made = {name: make(known, table) for name, make in _MAKERS.items() if name not in missing}
    return Replays(known=known, policies={**always, **made}, missing=missing)


def _random(known: Known, _: OutcomeTable) -> Replayed:
    return Mixed(path=known.mix)


def _length(known: Known, table: OutcomeTable) -> Replayed:
    """Long prompts go up, or short ones where that gained more on the fit rows."""
    fit = table.of("fit")
    gain = fit.quality[:, known.strong] - fit.quality[:, 0]
    sound = ~np.isnan(gain)
    up = _covariance(fit.lengths[sound], gain[sound]) >= 0.0
    return Ordered(
        name="length",
        knob="characters" if up else "minus characters",
        strong=known.strong,
        value=(lambda some: some.lengths) if up else (lambda some: -some.lengths),
    )


def _kind(known: Known, _: OutcomeTable) -> Replayed:
    return Priced(name="kind", value=known.by_kind, price=known.quotes)


def _doubt(known: Known, _: OutcomeTable) -> Replayed:
    return Ordered(
        name="doubt",
        knob="P(wrong)",
        strong=known.strong,
        value=lambda some: 1.0 - some.predicted[:, 0],
    )


def _uplift(known: Known, _: OutcomeTable) -> Replayed:
    return Ordered(
        name="uplift",
        knob="gain",
        strong=known.strong,
        value=lambda some: some.predicted[:, known.strong] - some.predicted[:, 0],
    )


def _classifier(known: Known, _: OutcomeTable) -> Replayed:
    return Priced(name="classifier", value=lambda some: some.predicted, price=known.quotes)


def _cascade(known: Known, _: OutcomeTable) -> Replayed:
    return Cascade(judged=_climbs(known), last=known.strong)


def _gain(known: Known, _: OutcomeTable) -> Replayed:
    return GainCascade(strong=known.strong)


def _utility(known: Known, _: OutcomeTable) -> Replayed:
    return Utility(known=known)


def _oracle(_: Known, __: OutcomeTable) -> Replayed:
    return oracle()


_MAKERS: Final[Mapping[str, Make]] = {
    RANDOM: _random,
    "length": _length,
    "kind": _kind,
    "doubt": _doubt,
    "uplift": _uplift,
    "classifier": _classifier,
    "cascade": _cascade,
    "cascade-by-gain": _gain,
    "utility": _utility,
    ORACLE: _oracle,
}

NAMES: Final[Sequence[str]] = tuple(_MAKERS)
"""All policies but those that always ask one tier."""


def _needs_lengths(_: Known, table: OutcomeTable) -> str:
    return _lacking("the length of the prompt", table.lengths[:, None])


def _needs_kinds(known: Known, table: OutcomeTable) -> str:
    """Groups do where there are no kinds, if those that were fitted on come up again."""
    again = np.isin(table.groups[table.splits != "fit"], known.kinds).any()
    told = len(known.kinds) > 1 and (again or not known.grouped)
    return "" if told else "all rows are of one kind, or of none"


def _needs_predictions(_: Known, table: OutcomeTable) -> str:
    return _lacking("a prediction", table.predicted)


def _needs_judge(known: Known, _: OutcomeTable) -> str:
    return "" if _climbs(known) else "no answer below the strong tier was judged on the fit rows"


def _needs_first_judge(known: Known, table: OutcomeTable) -> str:
    if 0 not in known.judged():
        return "no answer of the cheapest tier was judged on the fit rows"
    return _needs_predictions(known, table)


_NEEDS: Final[Mapping[str, Callable[[Known, OutcomeTable], str]]] = {
    "length": _needs_lengths,
    "kind": _needs_kinds,
    "doubt": _needs_predictions,
    "uplift": _needs_predictions,
    "classifier": _needs_predictions,
    "cascade": _needs_judge,
    "cascade-by-gain": _needs_first_judge,
    "utility": _needs_predictions,
}


def _lacking(what: str, values: Floats) -> str:
    lacking = int(np.isnan(values).any(axis=1).sum())
    if lacking == len(values):
        return f"no row has {what}"
    return f"{what} is missing in {lacking} of {len(values)} rows" if lacking else ""


def _climbs(known: Known) -> tuple[int, ...]:
    """The judged tiers below the strong one."""
    return tuple(tier for tier in known.judged() if tier < known.strong)


def _covariance(one: Floats, other: Floats) -> float:
    return float((one - one.mean()) @ (other - other.mean()))
