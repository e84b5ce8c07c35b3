"""How often daily looks are wrong when nothing differs, and how soon they see what does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evals.panel_report import Printed
from evals.simulate.experiments import BASE_QUALITY, BOUND, DAYS, Kind, Plan, Seen, look, play
from serving.results.sequences import ALPHA

LIFT = 0.03
SIZES: dict[Kind, Sequence[int]] = {"conversations": (40, 200), "people": (400, 2_000)}
"""Units of experiments without a difference: a day, or in all."""

LOSSES = (-0.01, -0.02, -0.05, -0.1)
LOSS_SIZE = 200
"""How much worse an arm is that a guardrail is to stop, at so many conversations a day."""

POWER_SIZES = (50, 100, 200, 400, 800)
"""Conversations a day whose quality is known."""

WEEKS = (7, 14, DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One plan with what looking at many experiments of it came to."""

    plan: Plan
    seen: Sequence[Seen]

    def share_found(self, metric: str, *, by: int = DAYS, naive: bool = False) -> float:
        """Of the experiments, those in which a difference was seen by that day."""
        days = [(each.naive if naive else each.found)[metric] for each in self.seen]
        return sum(day is not None and day <= by for day in days) / len(days)

    def share_stopped(self, *, by: int = DAYS) -> float:
        """Of the experiments, those that a guardrail has stopped by that day."""
        days = [each.stopped for each in self.seen]
        return sum(day is not None and day <= by for day in days) / len(days)

    @property
    def metrics(self) -> list[str]:
        """What is compared."""
        return list(self.seen[0].found)


def plans() -> tuple[list[Plan], list[Plan], list[Plan]]:
    """Those whose arms differ by nothing, and whose second arm is better, or worse."""
    same = [Plan(kind=kind, units=units) for kind, sizes in SIZES.items() for units in sizes]
    better = [Plan(kind="conversations", units=units, lift=LIFT) for units in POWER_SIZES]
    worse = [Plan(kind="conversations", units=LOSS_SIZE, lift=lift) for lift in LOSSES]
    return same, better, worse


def played(plan: Plan, runs: int, seed: int, done: Callable[[], None]) -> Played:
    """Many experiments of one plan; `done` is told of each."""
    random = np.random.default_rng([seed, plan.units, round((1 + plan.lift) * 1e6), len(plan.kind)])
    seen = []
    for _ in range(runs):
        seen.append(look(play(plan, random)))
        done()
    return Played(plan=plan, seen=seen)


def named(plan: Plan) -> str:
    """What it is, for people."""
    kind = f"{plan.units:,} {plan.kind}" + (" a day" if plan.kind == "conversations" else "")
    if not plan.lift:
        return kind
    return f"{kind}, {_points(plan.lift)} {'better' if plan.lift > 0 else 'worse'}"


def tables(
    same: Sequence[Played], better: Sequence[Played], worse: Sequence[Played]
) -> list[Printed | str]:
    """For the screen and the page."""
    alike = (
        f"{len(same[0].seen):,} experiments of each kind whose arms differ by nothing, looked at "
        f"at the end of each of {DAYS} days. False alarms are experiments in which a difference "
        f"was ever seen; at most {ALPHA:.0%} are meant to be, of each thing compared."
    )
    unlike = (
        f"{len(better[0].seen):,} experiments of each size whose second arm is {LIFT * 100:g} "
        f"points better (from {BASE_QUALITY:.0%}), by conversations a day whose quality is known, "
        "both arms together."
    )
    guarded = (
        f"{len(worse[0].seen):,} experiments of each kind with a guardrail at {BOUND * 100:g} "
        f"points of quality, {LOSS_SIZE} conversations a day, by how much worse the second arm is."
    )
    return [alike, _alarms(same), unlike, _power(better), guarded, _stops(worse)]


def record(played: Played) -> dict[str, object]:
    """The same for programs."""
    return {
        "traffic": played.plan.kind,
        "units": played.plan.units,
        "lift": played.plan.lift,
        "experiments": len(played.seen),
        "found": {name: played.share_found(name) for name in played.metrics},
        "found_by_naive_interval": {
            name: played.share_found(name, naive=True) for name in played.metrics
        },
        "stopped": played.share_stopped(),
        "shares_doubted": sum(each.doubted for each in played.seen) / len(played.seen),
    }


def _alarms(same: Sequence[Played]) -> Printed:
    head = ["traffic", "compared", "false alarms", "with an interval for one look"]
    rows = [
        [
            named(each.plan),
            metric,
            f"{each.share_found(metric):.1%}",
            f"{each.share_found(metric, naive=True):.1%}",
        ]
        for each in same
        for metric in each.metrics
    ]
    doubts = [
        [
            named(each.plan),
            "shares of the arms",
            f"{sum(one.doubted for one in each.seen) / len(each.seen):.1%}",
            "",
        ]
        for each in same
    ]
    return Printed("False alarms", head, [*rows, *doubts])


def _power(better: Sequence[Played]) -> Printed:
    head = ["conversations a day", *(f"seen by day {day}" for day in WEEKS), "half by day"]
    rows = []
    for each in better:
        days = sorted(
            DAYS + 1 if (day := one.found["quality"]) is None else day for one in each.seen
        )
        half = days[len(days) // 2]
        rows.append(
            [
                f"{each.plan.units:,}",
                *(f"{each.share_found('quality', by=day):.0%}" for day in WEEKS),
                f"{half}" if half <= DAYS else "later",
            ]
        )
    return Printed(f"How soon {LIFT * 100:g} points are seen", head, rows)


def _stops(worse: Sequence[Played]) -> Printed:
    head = ["worse by", *(f"turned off by day {day}" for day in WEEKS)]
    rows = [
        [
            _points(each.plan.lift),
            *(f"{each.share_stopped(by=day):.1%}" for day in WEEKS),
        ]
        for each in worse
    ]
    return Printed("How soon a guardrail stops an arm", head, rows)


def _points(lift: float) -> str:
    points = f"{abs(lift) * 100:g}"
    return f"{points} point" if points == "1" else f"{points} points"
