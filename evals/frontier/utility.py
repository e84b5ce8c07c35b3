"""The shipped utility rule played over a table: at every lambda at which some decision changes.

Beliefs before any call are the table's predictions, a verdict is taken at its word, and calls cost
what the fit rows lead one to expect; that is `cascade.policies.utility` with the posterior
`Unfitted`, which a test holds this to, row by row. What is paid is the table's own.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade.posterior import KAPPA
from evals.frontier.known import Known
from evals.frontier.outlook import NONE, Choices, Outlooks
from evals.frontier.pieces import Pieces, pieces
from evals.frontier.replayed import Replayed
from evals.frontier.sweep import Floats, Ints, Paths, Sweep, swept
from evals.tables import OutcomeTable

_AT_ONCE: Final = 1 << 15
_THREADS: Final = 2
_LEAST: Final = 1e-4
"""Of the cheapest call that costs anything: the least quality_usd that is looked at."""
_MOST: Final = 1e6
"""Of the dearest call: the most. A millionth of a chance is worth that call then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utility(Replayed):
    """Before any call and after each verdict it makes the call that is worth most, or stops.

    Attributes:
        known: from the fit rows: what calls and judgements are expected to cost.
        judge_gain: quality that a judge must be expected to add.
        kappa: how much of an answer's variance a verdict is expected to explain.
    """

    name: str = "utility"
    knob: str = "quality_usd"
    known: Known
    judge_gain: float = 0.002
    kappa: float = KAPPA

    def sweep(self, table: OutcomeTable) -> Sweep:
        """Every quality_usd at which a row's way changes, of those that can matter."""
        starts = range(0, max(1, len(table)), _AT_ONCE)
        with ThreadPoolExecutor(_THREADS) as pool:
            parts = list(pool.map(lambda at: self._some(table, at), starts))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return swept(
            table, _paths(len(table), len(table.tiers), _Ends(*columns)), "between", falling=False
        )

    def _some(self, table: OutcomeTable, start: int) -> "_Ends":
        """The ways of as many rows as are looked at together."""
        some = table.take(np.arange(start, min(len(table), start + _AT_ONCE)))
        ends = _Walk(some, self).all()
        return ends._replace(row=ends.row + start)


class _Ends(NamedTuple):
    """What finally becomes of a row for an interval of quality_usd.

    Attributes:
        row: whose way it is.
        low: quality_usd from which on it is so.
        way: the tiers that were asked and had their answers judged, one bit each, and above these
            one for an answer taken unseen.
        served: the tier whose answer is given.
        cost: dollars, judges included.
    """

    row: Ints
    low: Floats
    way: Ints
    served: Ints
    cost: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Rows that have been asked the same tiers and had them all judged; each with an interval.

    Attributes:
        low: of mu, the quality that a unit of cost must bring.
        high: of mu.
        best: quality of the best answer in hand; 0 without one.
        whose: the tier that gave it; NONE where no judge could tell.
        spent: dollars so far.
    """

    tried: tuple[int, ...]
    row: Ints
    low: Floats
    high: Floats
    best: Floats
    whose: Ints
    spent: Floats

    def __len__(self) -> int:
        return len(self.row)

    def take(self, place: NDArray[np.int64], low: Floats, high: Floats) -> "_State":
        """Some of the rows, with other intervals."""
        return _State(
            tried=self.tried,
            row=self.row[place],
            low=low,
            high=high,
            best=self.best[place],
            whose=self.whose[place],
            spent=self.spent[place],
        )


class _Walk:
    """All ways of some rows through the policy's calls."""

    def __init__(self, table: OutcomeTable, policy: Utility) -> None:
        known = policy.known
        prices = known.quotes(table).T
        self._table = table
        self._scale = float(prices.max(initial=0.0)) or 1.0
        """Costs are counted in this, so that lines have slopes of about one."""
        self._outlooks = Outlooks(
            means=np.ascontiguousarray(table.predicted.T),
            prices=np.ascontiguousarray(prices / self._scale),
            judging=known.judging / self._scale,
            kappa=policy.kappa,
            hold=policy.judge_gain,
        )
        self._hold = policy.judge_gain
        self._least = min((line.at for line in known.lines if line.at > 0.0), default=self._scale)
        self._ends: list[_Ends] = []

    def all(self) -> _Ends:
        """What becomes of each row at every quality_usd."""
        rows = len(self._table)
        state = _State(
            tried=(),
            row=np.arange(rows),
            low=np.full(rows, 1.0 / _MOST),
            high=np.full(rows, self._scale / (self._least * _LEAST)),
            best=np.zeros(rows),
            whose=np.full(rows, NONE),
            spent=np.zeros(rows),
        )
        self._go_on(state)
        return _Ends(*(np.concatenate(column) for column in zip(*self._ends, strict=True)))

    def _go_on(self, state: _State) -> None:
        left = [tier for tier in range(len(self._table.tiers)) if tier not in state.tried]
        if not len(state):
            return
        if not left:
            self._accept(state)
            return

        def best(place: Ints, mu: Floats) -> Choices:
            return self._outlooks.best(state.row[place], mu, state.best[place], left)

        found = pieces(best, state.low, state.high)
        stop = self._until(state, found)
        self._accept(_cut(state, found, np.maximum(found.low, stop), found.high))
        calls = _cut(state, found, found.low, np.minimum(found.high, stop))
        chosen = found.best.call[found.low < np.minimum(found.high, stop)]
        for call in np.unique(chosen):
            self._call(_some(calls, chosen == call), *divmod(int(call), 2))

    def _until(self, state: _State, found: Pieces) -> Floats:
        """The mu from which on the answer in hand is worth more than the call."""
        call, worth = found.best
        best, whose = state.best[found.row], state.whose[found.row]
        # What holding an answer must add decides which call is made, not whether one is.
        quality = worth.quality + np.where(call % 2 == 1, self._hold, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            until = (quality - best) / worth.cost
        until = np.where(worth.cost > 0.0, until, np.where(quality > best, np.inf, -np.inf))
        until = np.where(best >= 1.0, -np.inf, until)
        until = np.where(whose == NONE, np.inf, until)
        return np.where(call == NONE, -np.inf, until)

    def _accept(self, state: _State) -> None:
        """The best answer in hand is given; the last one where no judge could tell of any."""
        served = np.where(state.whose == NONE, (state.tried or (0,))[-1], state.whose)
        self._end(state, served, state.spent)

    def _call(self, state: _State, tier: int, judged: int) -> None:
        spent = state.spent + self._table.cost[state.row, tier]
        if not judged:
            self._end(state, np.full(len(state), tier), spent, unseen=True)
            return
        score = self._table.judged[state.row, tier]
        told = ~np.isnan(score)
        better = told & ((state.whose == NONE) | (score >= state.best))
        best, whose = np.where(better, score, state.best), np.where(better, tier, state.whose)
        spent = spent + self._table.judge_cost[state.row, tier]
        self._go_on(_with(state, tier, best, whose, spent))

    def _end(self, state: _State, served: Ints, spent: Floats, *, unseen: bool = False) -> None:
        tiers = len(self._table.tiers)
        way = sum(1 << tier for tier in state.tried) + (unseen << tiers)
        self._ends.append(
            _Ends(
                row=state.row,
                low=self._scale / state.high,
                way=np.full(len(state), way),
                served=served,
                cost=spent,
            )
        )


def _cut(state: _State, found: Pieces, low: Floats, high: Floats) -> _State:
    """What is left of pieces between other ends."""
    some = low < high
    return state.take(found.row[some], low[some], high[some])


def _some(state: _State, which: NDArray[np.bool_]) -> _State:
    place = np.flatnonzero(which)
    return state.take(place, state.low[place], state.high[place])


def _with(state: _State, tier: int, best: Floats, whose: Ints, spent: Floats) -> _State:
    """The state once that tier's answer was judged as well."""
    return _State(
        tried=(*state.tried, tier),
        row=state.row,
        low=state.low,
        high=state.high,
        best=best,
        whose=whose,
        spent=spent,
    )


def _paths(rows: int, tiers: int, ends: _Ends) -> Paths:
    """The ways in the order of quality_usd, without changes that change nothing."""
    order = np.lexsort((ends.low, ends.row))
    row, way, served = ends.row[order], ends.way[order], ends.served[order]
    low, cost = ends.low[order], ends.cost[order]
    asked = ((way | 1 << served) & (1 << tiers) - 1).astype(np.int32)
    first = np.diff(row, prepend=-1) != 0
    alike = (np.diff(way, prepend=-1) == 0) & (np.diff(served, prepend=-1) == 0)
    changes = ~first & ~alike
    start = np.flatnonzero(first)
    if len(start) != rows:
        raise AssertionError("a row has no way")
    return Paths(
        served=served[start].astype(np.int8),
        asked=asked[start],
        cost=cost[start],
        row=row[changes].astype(np.int32),
        key=low[changes],
        after=served[changes].astype(np.int8),
        after_asked=asked[changes],
        after_cost=cost[changes],
    )
