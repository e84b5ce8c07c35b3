"""What a policy's setting is chosen for, and which setting of the choose rows meets it.

The cheapest setting that just meets a quality on the choose rows misses it on other rows about half
of the time: it is the one that chance was kindest to. So the setting that is taken leaves room. It
is the cheapest whose margin, less what is not known of it, would be certified on the test rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cascade.errors import CascadeError
from evals.choice.bounds import Paired, paired, rows_needed
from evals.frontier.replayed import Replayed
from evals.frontier.sweep import Curve, Decisions, Floats, Sweep
from evals.tables import OutcomeTable

Kind = Literal["budget", "quality", "regret"]

ROOM: Final = 1.0
"""Standard errors of the choose rows that a setting's margin is taken to be smaller by."""
_LOOKED_AT: Final = 200
_SAME: Final = 1e-12
_DIGITS: Final = range(2, 16)


class ChoiceError(CascadeError):
    """No setting can be chosen, or a claim cannot be made; says why and what would do."""

    code = "not_chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a setting is to meet.

    Attributes:
        kind: "budget": dollars a request, in the mean; "quality": a share of the quality of the
            best single model; "regret": how much less than it the mean quality may be.
        value: how much.
        delta: the chance that what is said of it may be wrong.
    """

    kind: Kind
    value: float
    delta: float

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0:
            raise ChoiceError(f"a probability lies between 0 and 1, not at {1.0 - self.delta:g}")
        if self.kind == "budget" and not 0.0 <= self.value < float("inf"):
            raise ChoiceError(f"a budget is a number of dollars from 0, not {self.value:g}")
        if self.kind == "quality" and not 0.0 < self.value <= 1.0:
            raise ChoiceError(
                f"the quality is a share of the best single model's, above 0 and up to 1, not "
                f"{self.value:g}"
            )
        if self.kind == "regret" and not 0.0 < self.value < 1.0:
            raise ChoiceError(f"the regret lies between 0 and 1, not at {self.value:g}")

    @property
    def level(self) -> float:
        """The level of the claim that is tested; of a budget nothing is claimed beforehand."""
        return -self.value if self.kind == "regret" else self.value

    def paired(self, table: OutcomeTable, quality: Floats, best: int, largest: int) -> Paired:
        """What the goal's claim on these rows' quality is tested on.

        Args:
            table: the rows.
            quality: of what a policy did with each.
            best: the tier that it is compared with.
            largest: rows of the largest group.
        """
        other = table.quality[:, best]
        if self.kind == "regret":
            return paired(quality - other, table.groups, largest=largest, least=-1.0)
        yardstick = other if self.kind == "quality" else None
        return paired(quality, table.groups, yardstick=yardstick, largest=largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a setting is chosen on.

    Attributes:
        policy: whose setting.
        rows: the choose rows.
        best: the tier of the best single model.
        largest: rows of the largest group in the whole table.
        tested: rows that the choice will be tested on.
    """

    policy: Replayed
    rows: OutcomeTable
    best: int
    largest: int
    tested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A setting, and what it does on the choose rows; means over them.

    Attributes:
        knob: the setting.
        doubt: standard errors that its margin was taken to be smaller by; None where it was not.
    """

    knob: float
    cost: float
    quality: float
    doubt: float | None = None


def best_single(table: OutcomeTable) -> int:
    """The tier of the best mean quality on all rows but the test's; of equals the first."""
    return int(table.take(table.splits != "test").quality.mean(axis=0).argmax())


def largest_group(table: OutcomeTable) -> int:
    """Rows of the largest group."""
    return int(np.unique(table.groups, return_counts=True)[1].max(initial=1))


def within_budget(grounds: Grounds, budget: float) -> Picked:
    """The best setting whose mean cost is no more; of equals the cheapest.

    Raises:
        ChoiceError: even the cheapest setting costs more.
    """
    sweep = grounds.policy.sweep(grounds.rows)
    curve = sweep.curve()
    affordable = np.flatnonzero(curve.cost <= budget * (1.0 + _SAME))
    if not len(affordable):
        raise ChoiceError(
            f"{grounds.policy.name} costs at least {curve.cost.min():.3g} dollars a request on the "
            f"choose rows, and the budget is {budget:.3g}"
        )
    order = np.lexsort((curve.cost[affordable], -curve.quality[affordable]))
    return _picked(sweep, int(affordable[order[0]]), None)


def plain(grounds: Grounds, goal: Goal) -> Picked:
    """The cheapest setting that meets the goal on the choose rows, leaving no room at all.

    Raises:
        ChoiceError: there is none.
    """
    sweep = grounds.policy.sweep(grounds.rows)
    return _picked(sweep, int(_meeting(grounds, sweep.curve(), goal)[0]), 0.0)


def roomy(grounds: Grounds, goal: Goal, doubt: float = ROOM) -> Picked | None:
    """The cheapest setting that as many rows as the test has would certify, or None.

    Args:
        grounds: what it is chosen on.
        goal: a quality or a regret.
        doubt: standard errors that a margin on the choose rows is taken to be smaller by.

    Raises:
        ChoiceError: no setting meets the goal on the choose rows, whatever room it leaves.
    """
    sweep = grounds.policy.sweep(grounds.rows)
    curve = sweep.curve()
    some = _meeting(grounds, curve, goal)

    def enough(at: int) -> bool:
        done: Decisions = sweep.at(float(curve.knob[at]))
        found = goal.paired(grounds.rows, done.quality, grounds.best, grounds.largest)
        needed = rows_needed(found, goal.level, goal.delta, doubt=doubt)
        return needed is not None and needed <= grounds.tested

    place = _first(0, len(some), lambda at: enough(int(some[at])))
    return None if place is None else _picked(sweep, int(some[place]), doubt)


def _meeting(grounds: Grounds, curve: Curve, goal: Goal) -> NDArray[np.intp]:
    """Settings that meet the goal on the choose rows, the cheapest first."""
    other = float(grounds.rows.quality[:, grounds.best].mean())
    wanted = other - goal.value if goal.kind == "regret" else other * goal.value
    found = np.flatnonzero(curve.quality >= wanted - _SAME)
    if not len(found):
        tier = grounds.rows.tiers[grounds.best]
        raise ChoiceError(
            f"no setting of {grounds.policy.name} is good enough on the choose rows: it takes "
            f"{wanted:.3f}, of {other:.3f} with always:{tier}, and the best has "
            f"{curve.quality.max():.3f}"
        )
    return found[np.lexsort((-curve.quality[found], curve.cost[found]))]


def _first(low: int, high: int, good: Callable[[int], bool]) -> int | None:
    """The first good one of a range, looked for in strides, then between two that were tried."""
    stride = max(1, (high - low) // _LOOKED_AT)
    tried = [*range(low, high, stride), high - 1]
    hit = next((at for at in tried if good(at)), None)
    if hit is None or stride == 1:
        return hit
    earlier = _first(max(low, hit - stride + 1), hit, good) if hit > low else None
    return hit if earlier is None else earlier


def _picked(sweep: Sweep, at: int, doubt: float | None) -> Picked:
    curve = sweep.curve()
    return Picked(
        knob=shortest(sweep, at),
        cost=float(curve.cost[at]),
        quality=float(curve.quality[at]),
        doubt=doubt,
    )


def shortest(sweep: Sweep, at: int) -> float:
    """The setting in as few digits as leave every decision on the rows as it is."""
    knob = float(sweep.knob[at])
    tried = (float(f"{knob:.{digits}g}") for digits in _DIGITS)
    return next((each for each in tried if sweep.place(each) == at), knob)
