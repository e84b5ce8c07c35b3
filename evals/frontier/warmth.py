"""What cold caches cost where conversations are known: the price of going to another tier.

A turn's prompt begins with the one before it. The tier that answered the last turn still has that
part in its cache and reads it; any other tier that is asked computes it. So a turn's price hangs on
who answered the last one, and a policy that changes tiers pays for it. The policies decide without
regard to this: they are what they are, and the bill is honest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from cascade.prefix.ratio import START
from cascade.pricing import PriceCard
from evals.frontier.known import FrontierError
from evals.frontier.replayed import Replayed
from evals.frontier.sweep import Changes, Floats, Ints, Sweep
from evals.tables import OutcomeTable

NONE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """What a character of a cached prefix saves with each tier.

    Attributes:
        dollars: by tier, of shape (tiers,).
    """

    dollars: Floats

    @classmethod
    def of(cls, tiers: Sequence[str], cards: Mapping[str, PriceCard | None]) -> "Warmth":
        """From price cards: the rate of computing or writing a token, less that of reading it.

        Tiers without a card, or whose card does not say both, save nothing. A token is taken for
        four characters.
        """
        return cls(dollars=np.array([_rate(cards.get(tier)) for tier in tiers]) * START)

    def warm(self, table: OutcomeTable) -> OutcomeTable:
        """The table with every turn but the first billed as if its prefix were warm.

        The table's own costs are those of calls by themselves, with nothing cached. This is what a
        conversation costs that stays with one tier.

        Raises:
            FrontierError: a conversation is in two splits.
        """
        before = last_turns(table)
        torn = (before != NONE) & (table.splits != table.splits[before])
        if torn.any():
            session = str(table.sessions[torn.argmax()])
            raise FrontierError(
                f"{table.source}: the session {session!r} is in two splits: "
                "name the column of sessions as the group as well"
            )
        return replace(table, cost=np.maximum(0.0, table.cost - self.premium(table)))

    def premium(self, table: OutcomeTable) -> Floats:
        """Dollars more that each turn costs with a tier that is cold, of shape (rows, tiers)."""
        before = last_turns(table)
        prefix = np.where(before == NONE, 0.0, np.minimum(table.lengths, table.lengths[before]))
        found: Floats = np.nan_to_num(prefix)[:, None] * self.dollars
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Cold(Replayed):
    """A policy that pays for each call of a tier that did not answer the conversation's last turn.

    Its table's costs are those of warm prefixes.
    """

    name: str
    knob: str
    inner: Replayed
    warmth: Warmth

    @property
    def least(self) -> float:  # type: ignore[override]
        """As the policy itself has it."""
        return self.inner.least

    def sweep(self, table: OutcomeTable) -> Sweep:
        """The policy's own settings, with what going to and fro costs at each."""
        sweep = self.inner.sweep(table)
        states = _States(sweep)
        premium, before = self.warmth.premium(table), last_turns(table)
        row, step = _moments(sweep, before)
        start = np.flatnonzero(before != NONE)
        cost = sweep.cost.copy()
        cost[start] += states.paid(start, before[start], np.zeros_like(start), premium)
        now = states.paid(row, before[row], step, premium)
        change = now - states.paid(row, before[row], step - 1, premium)
        matters = np.flatnonzero(change)
        row, step = row[matters], step[matters]
        served, _ = states.of(row, step)
        merged = _merged(sweep.changes, row, step, change[matters], served)
        return replace(sweep, cost=cost, changes=merged)


class _States:
    """Who answers a row, and who is asked, at any setting of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        some = sweep.changes
        self._sweep, self._width = sweep, len(sweep.knob)
        order = np.lexsort((some.step, some.row))
        self._row, self._after, self._asked = some.row[order], some.after[order], some.asked[order]
        self._key = self._row.astype(np.int64) * self._width + some.step[order]

    def of(self, row: Ints, step: Ints) -> tuple[Ints, Ints]:
        """The tier that answers each row at a setting, and the tiers that are asked."""
        sweep = self._sweep
        last = np.searchsorted(self._key, row * self._width + step, side="right") - 1
        if not len(self._key):
            return sweep.served[row].astype(np.int64), sweep.asked[row].astype(np.int64)
        changed = (last >= 0) & (self._row[last] == row)
        served = np.where(changed, self._after[last], sweep.served[row])
        asked = np.where(changed, self._asked[last], sweep.asked[row])
        return served.astype(np.int64), asked.astype(np.int64)

    def paid(self, row: Ints, before: Ints, step: Ints, premium: Floats) -> Floats:
        """The premiums of the tiers that are asked and did not answer the turn before."""
        _, asked = self.of(row, step)
        warm, _ = self.of(before, step)
        found = np.zeros(len(row))
        for tier in range(premium.shape[1]):
            cold = (asked >> tier & 1 == 1) & (warm != tier)
            found += np.where(cold, premium[row, tier], 0.0)
        return found


def last_turns(table: OutcomeTable) -> Ints:
    """Of each row, that of its conversation's turn before; NONE for a first turn and for others."""
    found = np.full(len(table), NONE)
    if not (table.sessions != "").any():
        return found
    order = np.argsort(table.sessions, kind="stable")
    sessions = table.sessions[order]
    follows = (sessions[1:] == sessions[:-1]) & (sessions[1:] != "")
    found[order[1:][follows]] = order[:-1][follows]
    return found


def _moments(sweep: Sweep, before: Ints) -> tuple[Ints, Ints]:
    """Rows and settings at which a turn's premium may change: with its own or the last answer."""
    row, step = sweep.changes.row.astype(np.int64), sweep.changes.step.astype(np.int64)
    following = np.full(len(before), NONE)
    later = np.flatnonzero(before != NONE)
    following[before[later]] = later
    mine, next_ = before[row] != NONE, following[row] != NONE
    rows = np.concatenate([row[mine], following[row[next_]]])
    steps = np.concatenate([step[mine], step[next_]])
    width = len(sweep.knob)
    both = np.unique(rows * width + steps)
    return both // width, both % width


def _merged(some: Changes, row: Ints, step: Ints, cost: Floats, served: Ints) -> Changes:
    """Changes with more that only cost."""
    steps = np.concatenate([some.step, step.astype(np.int32)])
    order = np.argsort(steps, kind="stable")
    tier = served.astype(np.int8)
    asked = np.zeros(len(row), dtype=np.int32)
    return Changes(
        step=steps[order],
        row=np.concatenate([some.row, row.astype(np.int32)])[order],
        cost=np.concatenate([some.cost, cost])[order],
        quality=np.concatenate([some.quality, np.zeros(len(row))])[order],
        before=np.concatenate([some.before, tier])[order],
        after=np.concatenate([some.after, tier])[order],
        asked=np.concatenate([some.asked, asked])[order],
    )


def _rate(card: PriceCard | None) -> float:
    """Dollars that a token costs more when it is not in the cache."""
    if card is None:
        return 0.0
    computed, read = card.write_rate(), card.read_rate()
    if computed is None or read is None:
        return 0.0
    return max(0.0, float(computed - read))
