"""Made-up experiments, looked at every day by what the service compares arms with.

In one kind of traffic a unit is a conversation: it comes, asks a few times and is gone. In the
other it is a person who comes back on many days, so that what was there yesterday goes on growing,
which the theory of the intervals does not cover: it is here to be measured. Units differ in how
hard their questions are and in what they cost, costs have a long tail, and the arms differ by
nothing, or by what is asked for.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serving.results.ratios import Sums, difference, estimate
from serving.results.shares import shares

Floats = NDArray[np.floating[Any]]
Kind = Literal["conversations", "people"]

DAYS = 30
METRICS = ("quality", "cost", "escalation rate")
BASE_QUALITY = 0.8
VISITS = 0.25
"""Share of the days on which a person comes."""

BOUND = -0.02
ONE_LOOK = 1.959964


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An experiment of two arms.

    Attributes:
        kind: of traffic.
        units: conversations a day, or people in all.
        lift: how much better the second arm's answers are, in [-1, 1].
        days: it goes on.
    """

    kind: Kind
    units: int
    lift: float = 0.0
    days: int = DAYS


class Look(NamedTuple):
    """Both arms' sums of one ratio at the end of a day."""

    arm: Sums
    control: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One experiment as it was seen day by day.

    Attributes:
        looks: by what is compared, one a day.
        counts: by day, units of each arm so far.
    """

    looks: Mapping[str, Sequence[Look]]
    counts: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What looking at one experiment every day came to, by what is compared.

    Attributes:
        found: first day with an interval without zero; None: never.
        naive: the same with the interval for one look.
        stopped: first day on which a guardrail on quality at BOUND turns the second arm off.
        doubted: whether the shares were ever doubted.
    """

    found: dict[str, int | None]
    naive: dict[str, int | None]
    stopped: int | None
    doubted: bool


def play(plan: Plan, random: np.random.Generator) -> Played:
    """One experiment."""
    if plan.kind == "conversations":
        return _conversations(plan, random)
    return _people(plan, random)


def look(played: Played) -> Seen:
    """Look at it at the end of every day."""
    found, naive = {}, {}
    for name, looks in played.looks.items():
        bounded = not name.startswith("cost")
        found[name] = _first(_sequential(each, bounded=bounded) for each in looks)
        naive[name] = _first(_once(each) for each in looks)
    doubts = (shares({"a": 1, "b": 1}, {"a": a, "b": b}).broken for a, b in played.counts)
    stopped = _first(_beyond(each) for each in played.looks["quality"])
    return Seen(found=found, naive=naive, stopped=stopped, doubted=any(doubts))


def _sequential(each: Look, *, bounded: bool) -> bool:
    found = difference(each.arm, each.control, bounded=bounded, as_ratio=not bounded).interval
    return found is not None and found.excludes_zero


def _beyond(each: Look) -> bool:
    found = difference(each.arm, each.control, bounded=True).interval
    return found is not None and found.high < BOUND


def _once(each: Look) -> bool:
    """By the interval that holds for a look at a time that was fixed before."""
    mine, theirs = (estimate(sums, 0.0, 0.0, bounded=False) for sums in each)
    error = math.hypot(mine.error, theirs.error)
    return abs(mine.ratio - theirs.ratio) > ONE_LOOK * error


def _first(answers: Iterator[bool]) -> int | None:
    return next((day for day, answer in enumerate(answers, 1) if answer), None)


def _conversations(plan: Plan, random: np.random.Generator) -> Played:
    """Every unit is of one day; sums grow by the day's."""
    shape = (plan.days, plan.units)
    arm = random.random(shape) < 0.5  # noqa: PLR2004 - half of the units
    n = 1.0 + random.poisson(1.5, shape)
    values = _values(plan, arm, n, _habits(shape, random), random)
    looks = {}
    for name, s in values.items():
        daily = [_products(s, n, side) for side in (arm, ~arm)]
        summed = [{key: each.sum(axis=1).cumsum() for key, each in one.items()} for one in daily]
        looks[name] = [Look(*(_sums(one, day) for one in summed)) for day in range(plan.days)]
    return Played(looks=looks, counts=_counts(arm.sum(axis=1).cumsum(), (~arm).sum(1).cumsum()))


def _people(plan: Plan, random: np.random.Generator) -> Played:
    """A unit's own sums grow from day to day; what it spent before the experiment is known."""
    days, people = plan.days, plan.units
    arm = np.broadcast_to(random.random(people) < 0.5, (days, people))  # noqa: PLR2004
    n = random.poisson(2.0, (days, people)) * (random.random((days, people)) < VISITS)
    habits = _habits((1, people), random)
    values = _values(plan, arm, n.astype(float), habits, random)
    before = random.poisson(2.0 * VISITS * DAYS, people).astype(float)
    spent = before * habits.cost[0] * random.lognormal(0.0, 0.3, people)
    x = spent - spent.sum() / before.sum() * before
    so_far = n.cumsum(axis=0).astype(float)
    here = so_far > 0
    looks: dict[str, Sequence[Look]] = {}
    for name, s in values.items():
        grown = s.cumsum(axis=0)
        looks[name] = list(_looks(grown, so_far, here & arm, here & ~arm))
        if name == "cost":
            covariate = np.broadcast_to(x, grown.shape)
            told = _looks(grown, so_far, here & arm, here & ~arm, covariate)
            looks["cost, less what people spent before"] = list(told)
    return Played(looks=looks, counts=_counts((here & arm).sum(axis=1), (here & ~arm).sum(axis=1)))


class _Habits(NamedTuple):
    """What units are like: how good answers to them are, what a request costs, how hard it is."""

    quality: Floats
    cost: Floats
    escalation: Floats


def _habits(shape: tuple[int, ...], random: np.random.Generator) -> _Habits:
    strength = 6.0
    return _Habits(
        quality=random.beta(BASE_QUALITY * strength, (1 - BASE_QUALITY) * strength, shape),
        cost=random.lognormal(-6.0, 1.0, shape),
        escalation=random.beta(1.0, 3.0, shape),
    )


def _values(
    plan: Plan, arm: NDArray[np.bool_], n: Floats, habits: _Habits, random: np.random.Generator
) -> dict[str, Floats]:
    """By what is compared, each unit's sums over its n requests of a day."""
    quality = np.clip(habits.quality + plan.lift * arm, 0.0, 1.0)
    number = n.astype(np.int64)
    return {
        "quality": random.binomial(number, quality).astype(float),
        "cost": n * habits.cost * random.lognormal(0.0, 0.7, n.shape),
        "escalation rate": random.binomial(
            number, np.broadcast_to(habits.escalation, n.shape)
        ).astype(float),
    }


def _products(s: Floats, n: Floats, side: NDArray[np.bool_], x: Any = 0.0) -> dict[str, Floats]:
    s, n, x = s * side, n * side, x * side
    products = {"s": s, "n": n, "ss": s * s, "sn": s * n, "nn": n * n}
    return products | {"x": x, "xx": x * x, "sx": s * x, "nx": n * x, "units": 1.0 * side}


def _looks(
    s: Floats,
    n: Floats,
    arm: NDArray[np.bool_],
    control: NDArray[np.bool_],
    x: Floats | float = 0.0,
) -> Iterator[Look]:
    summed = [
        {key: each.sum(axis=1) for key, each in _products(s, n, side, x).items()}
        for side in (arm, control)
    ]
    for day in range(len(s)):
        yield Look(*(_sums(one, day) for one in summed))


def _sums(summed: dict[str, Floats], day: int) -> Sums:
    numbers = {key: float(each[day]) for key, each in summed.items() if key != "units"}
    return Sums(units=int(summed["units"][day]), **numbers)


def _counts(a: NDArray[Any], b: NDArray[Any]) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, other in zip(a, b, strict=True)]
