"""Cascades: the cheapest tier is always paid first, and its judge says who goes on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.frontier.replayed import Replayed
from evals.frontier.sweep import Floats, Masks, Paths, Sweep, swept
from evals.tables import OutcomeTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade(Replayed):
    """Climbs until a judge's score reaches the knob; the last tier's answer is taken unseen.

    One threshold holds for all judged tiers, as in a ladder with the same accept_at at each step.
    An answer that its judge cannot tell of is not accepted. Each call and each judgement is paid.

    Attributes:
        judged: the tiers before the last, from the first.
        last: where it ends.
    """

    name: str = "cascade"
    knob: str = "accept_at"
    judged: tuple[int, ...]
    last: int

    def sweep(self, table: OutcomeTable) -> Sweep:
        """Each judge's score is a step, from accepting all to accepting none."""
        return swept(table, self._paths(table), "passed", falling=False)

    def _paths(self, table: OutcomeTable) -> Paths:
        """A row ends at its first tier whose score reaches the knob: its next higher score."""
        rows = len(table)
        scores = np.nan_to_num(table.judged[:, self.judged], nan=-np.inf)
        best = np.maximum.accumulate(scores, axis=1)
        before = np.hstack([np.full((rows, 1), -np.inf), best[:, :-1]])
        record = scores > before
        following = np.full(rows, self.last, dtype=np.int64)
        found: list[tuple[NDArray[np.int64], Floats, NDArray[np.int64]]] = []
        for place in reversed(range(len(self.judged))):
            at = np.flatnonzero(record[:, place])
            found.append((at, scores[at, place], following[at]))
            following[at] = self.judged[place]
        row, key, after = (np.concatenate(part) for part in zip(*reversed(found), strict=True))
        if len(self.judged) > 1:
            order = np.argsort(row, kind="stable")
            row, key, after = row[order], key[order], after[order]
        bills, asked = self._bills(table), self._asked(len(table.tiers))
        return Paths(
            served=following.astype(np.int8),
            asked=asked[following],
            cost=bills[np.arange(rows), following],
            row=row.astype(np.int32),
            key=key,
            after=after.astype(np.int8),
            after_asked=asked[after],
            after_cost=bills[row, after],
        )

    def _asked(self, tiers: int) -> Masks:
        """The tiers that are called on the way up to each."""
        found = np.zeros(tiers, dtype=np.int32)
        mask = 0
        for tier in (*self.judged, self.last):
            mask |= 1 << tier
            found[tier] = mask
        return found

    def _bills(self, table: OutcomeTable) -> Floats:
        """Dollars of climbing up to each tier, judges included; NaN for tiers it never asks."""
        found = np.full(table.cost.shape, np.nan)
        spent = np.zeros(len(table))
        for tier in self.judged:
            spent = spent + table.cost[:, tier] + table.judge_cost[:, tier]
            found[:, tier] = spent
        found[:, self.last] = spent + table.cost[:, self.last]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GainCascade(Replayed):
    """The cheapest tier answers and is judged; the rows with the most to gain go up.

    What is gained is what was predicted of the strong tier less what the judge says of the answer
    in hand. That an answer is bad is not yet a reason to go up: the strong one may fail as well. An
    answer that its judge cannot tell of goes up.
    """

    name: str = "cascade-by-gain"
    knob: str = "gain"
    strong: int

    def sweep(self, table: OutcomeTable) -> Sweep:
        """A row goes up where its gain is at least the knob."""
        score = table.judged[:, 0]
        told = ~np.isnan(score)
        both = table.cost[:, 0] + table.judge_cost[:, 0]
        up = both + table.cost[:, self.strong]
        row, both_asked = np.flatnonzero(told), 1 | 1 << self.strong
        paths = Paths(
            served=np.where(told, 0, self.strong).astype(np.int8),
            asked=np.where(told, 1, both_asked).astype(np.int32),
            cost=np.where(told, both, up),
            row=row.astype(np.int32),
            key=score[row] - table.predicted[row, self.strong],
            after=np.full(len(row), self.strong, dtype=np.int8),
            after_asked=np.full(len(row), both_asked, dtype=np.int32),
            after_cost=up[row],
        )
        return swept(table, paths, "reached", falling=True)
