"""The figures of the test rows, under any weights of its groups, so that each has an interval."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from evals.frontier.cascades import Cascade
from evals.frontier.choosing import Chosen, between, sound
from evals.frontier.known import Known
from evals.frontier.metrics import Gap, aiq, apgr, auc, cpt, expected_cost, ibc_lift, saved
from evals.frontier.replayed import Always, Mixed, Replayed
from evals.frontier.resampling import THREADS, Clusters, Totals, Tracked
from evals.frontier.sweep import Curve, Floats, Ints
from evals.frontier.warmth import Cold
from evals.metrics import Interval, Point
from evals.tables import OutcomeTable

METRICS: Final = ("APGR", "CPT50", "CPT80", "AIQ", "AUC", "lead")
"""Of a whole curve; lead is its AUC less that of mixing at random."""

OF_A_POINT: Final = ("quality", "cost", "relative", "savings", "IBC lift")
"""Of a setting; relative is its quality over the best single tier's."""

_OF_A_PAIR: Final = 2


class Measured(NamedTuple):
    """A value with its interval over groups; NaN where it has none."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting that was chosen on the choose rows, as it does on the test rows.

    Attributes:
        target: share of the best single tier's quality that it was chosen for.
        knob: None where no setting reached the target on the choose rows.
        measured: by name, one of OF_A_POINT; empty without a knob.
        shares: of the answers, by tier; empty without a knob.
        expected: of a cascade, the cost if those that go up cost as much as any; else None.
    """

    target: float
    knob: float | None
    measured: Mapping[str, Measured]
    shares: Sequence[float]
    expected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A policy on the test rows.

    Attributes:
        name: of the policy.
        knob: what its setting is called.
        metrics: by name, one of METRICS.
        settings: one a target.
        curve: every setting.
        hull: of the curve, the places of the settings that are on the choose rows' hull.
        sound: how many settings from the first somebody might run.
    """

    name: str
    knob: str
    metrics: Mapping[str, Measured]
    settings: Sequence[Setting]
    curve: Curve
    hull: Ints
    sound: int


class _Frame(NamedTuple):
    """What curves are held against under some weights.

    Attributes:
        pair: the cheapest tier and the strong one.
        whole: the cheapest and the dearest.
        best: the best single tier.
        line: area of mixing at random.
    """

    pair: Gap
    whole: Gap
    best: Point
    line: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """A policy's curve on the test rows, with the places of what was chosen.

    Attributes:
        places: of each target, in the curve; of a random mix, the share itself.
    """

    policy: Replayed
    chosen: Chosen
    curve: Curve
    tracked: Tracked | None
    places: dict[float, float | None]
    hull: Ints
    sound: int


class Figures:
    """Everything that is measured on the test rows.

    Args:
        table: the test rows.
        known: from the fit rows.
        policies: with what was chosen of each.
    """

    def __init__(
        self, table: OutcomeTable, known: Known, policies: Iterable[tuple[Replayed, Chosen]]
    ) -> None:
        self.clusters = Clusters(table)
        self._table, self._known = table, known
        self._costs = [self.clusters.sums(some) for some in table.cost.T]
        self._qualities = [self.clusters.sums(some) for some in table.quality.T]
        swept = [each for each in policies if not isinstance(each[0], Always)]
        with ThreadPoolExecutor(THREADS) as pool:
            self._policies = list(pool.map(lambda each: self._play(*each), swept))

    def _play(self, policy: Replayed, chosen: Chosen) -> _Played:
        if isinstance(policy, Mixed):
            curve = policy.curve(self._table)
            return _Played(
                policy=policy,
                chosen=chosen,
                curve=curve,
                tracked=None,
                places=chosen.targets,
                hull=np.arange(len(curve)),
                sound=len(curve),
            )
        sweep = policy.sweep(self._table)
        curve = sweep.curve()
        return _Played(
            policy=policy,
            chosen=chosen,
            curve=curve,
            tracked=Tracked(sweep, self.clusters, self._known.strong),
            places={
                target: None if knob is None else sweep.place(knob)
                for target, knob in chosen.targets.items()
            },
            hull=np.array([sweep.place(knob) for knob in chosen.hull], dtype=np.int64),
            sound=len(sound(policy, curve)),
        )

    def statistics(self, weights: Floats) -> list[float]:
        """All figures in one row: of each tier, then of each policy."""
        costs = self.clusters.means(self._costs, weights)
        qualities = self.clusters.means(self._qualities, weights)
        pair, whole = gaps(costs, qualities, self._known)
        best = Point(costs[self._known.best], qualities[self._known.best])
        mix = list(self._known.mix)
        line = Totals(
            np.array(costs)[mix], np.array(qualities)[mix], np.arange(len(mix), dtype=np.float64)
        )
        frame = _Frame(pair, whole, best, auc(line.cost, line.quality, whole))
        found = [*qualities, *costs]
        for each in self._policies:
            found += _of(
                each, line if each.tracked is None else each.tracked.totals(weights), frame
            )
        return found

    def told(
        self, found: Sequence[Measured]
    ) -> tuple[dict[str, dict[str, Measured]], list[Result]]:
        """The same figures by name: of each tier, and of each policy."""
        left = iter(found)
        tiers = self._table.tiers
        quality, cost = ([next(left) for _ in tiers] for _ in range(2))
        singles = {
            tier: {"quality": quality[at], "cost": cost[at]} for at, tier in enumerate(tiers)
        }
        return singles, [self._result(each, left) for each in self._policies]

    def _result(self, each: _Played, left: Iterator[Measured]) -> Result:
        metrics = {name: next(left) for name in METRICS}
        return Result(
            name=each.policy.name,
            knob=each.policy.knob,
            metrics=metrics,
            settings=[self._setting(each, target, left) for target in each.places],
            curve=each.curve,
            hull=each.hull,
            sound=each.sound,
        )

    def _setting(self, each: _Played, target: float, left: Iterator[Measured]) -> Setting:
        place = each.places[target]
        if place is None:
            return Setting(target=target, knob=None, measured={}, shares=(), expected=None)
        shares = between(each.curve.shares, place)
        return Setting(
            target=target,
            knob=each.chosen.targets[target],
            measured={name: next(left) for name in OF_A_POINT},
            shares=shares.tolist(),
            expected=self._expected(each.policy, shares),
        )

    def _expected(self, policy: Replayed, shares: Floats) -> float | None:
        policy = policy.inner if isinstance(policy, Cold) else policy
        if not isinstance(policy, Cascade):
            return None
        climb = [*policy.judged, policy.last]
        each = self._table.cost[:, climb].mean(axis=0)
        each[:-1] += self._table.judge_cost[:, climb[:-1]].mean(axis=0)
        reached = np.cumsum(shares[climb][::-1])[::-1]
        return expected_cost(each, reached)


def gaps(costs: Sequence[float], qualities: Sequence[float], known: Known) -> tuple[Gap, Gap]:
    """From the cheapest tier to the strong one, and to the dearest; from the tiers' means."""
    cheapest, strong, dearest = (
        Point(costs[at], qualities[at]) for at in (0, known.strong, known.dearest)
    )
    return Gap(cheapest, strong), Gap(cheapest, dearest)


def _of(each: _Played, totals: Totals, frame: _Frame) -> list[float]:
    """A policy's METRICS, then OF_A_POINT of each setting."""
    share = _share(totals, each.curve, frame.pair)
    area = auc(totals.cost[: each.sound], totals.quality[: each.sound], frame.whole)
    found = [
        apgr(share, totals.quality, frame.pair),
        *cpt(share, totals.quality, frame.pair, (0.5, 0.8)),
        aiq(totals.cost[each.hull], totals.quality[each.hull], frame.whole),
        area,
        area - frame.line,
    ]
    for place in each.places.values():
        if place is not None:
            point = Point(*(float(between(some, place)) for some in totals[:2]))
            found += _point(point, frame)
    return found


def _point(point: Point, frame: _Frame) -> list[float]:
    best = frame.best
    return [
        point.quality,
        point.cost,
        point.quality / best.quality if best.quality else np.nan,
        saved(point.cost, best.cost),
        ibc_lift(point, frame.pair),
    ]


def _share(totals: Totals, curve: Curve, pair: Gap) -> Floats:
    """Share of strong calls; with more than two tiers, of the way in cost to the strong one."""
    if curve.shares.shape[1] == _OF_A_PAIR:
        return totals.share
    if pair.cost <= 0.0:
        return np.full_like(totals.cost, np.nan)
    return np.clip((totals.cost - pair.weak.cost) / pair.cost, 0.0, 1.0)
