"""Whether one policy is better than another: the paired difference on the same test prompts.

Prompts that are hard for both widen nothing, since only the differences count. A setting that is
not given is chosen on the choose rows; the test rows are used for the difference alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evals.choice.goals import ChoiceError, best_single, shortest
from evals.choice.means import Spread, spread
from evals.frontier.known import complete
from evals.frontier.policies import ALWAYS, Replays, replayed
from evals.frontier.sweep import Curve, Decisions
from evals.tables import OutcomeTable


class Named(NamedTuple):
    """A policy and its setting.

    Attributes:
        name: of the policy.
        knob: what its setting is called; empty where it has none.
        at: the setting.
        chosen: it was chosen on the choose rows, not given.
    """

    name: str
    knob: str
    at: float
    chosen: bool

    def __str__(self) -> str:
        return f"{self.name}:{self.at:g}" if self.knob else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a policy does on the test rows; means over them."""

    policy: Named
    cost: float
    quality: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A prompt that the two policies differ on.

    Attributes:
        row: its number among the test rows.
        served: the tier that answered, of each policy.
        quality: of each policy's answer.
        cost: dollars, of each policy.
    """

    row: int
    served: tuple[str, str]
    quality: tuple[float, float]
    cost: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two policies on the same test rows; differences are the first less the second.

    Attributes:
        source: the file.
        rows: test rows.
        groups: how many of these are not alike.
        chosen_rows: choose rows, where a setting was chosen.
        quality: difference of the mean qualities.
        cost: difference of the mean dollars a request.
        same: rows that both have answered by the same tier.
        apart: the prompts that they differ on, the largest difference in quality first.
    """

    source: str
    rows: int
    groups: int
    chosen_rows: int
    sides: tuple[Side, Side]
    quality: Spread
    cost: Spread
    same: int
    apart: Sequence[Apart]


def compare(table: OutcomeTable, first: str, second: str) -> Compared:
    """Two policies, each NAME or NAME:SETTING, on the test rows.

    Raises:
        ChoiceError: there are no test rows, or a setting is no number.
        FrontierError: there is no such policy, or the table cannot play it.
    """
    table = complete(table)
    replays = replayed(table)
    test = table.of("test")
    if not len(test):
        raise ChoiceError(f"{table.source}: there are no rows to test on")
    one, other = (named(replays, table, text) for text in (first, second))
    left, right = (replays[each.name].decisions(test, each.at) for each in (one, other))
    return Compared(
        source=table.source,
        rows=len(test),
        groups=len(np.unique(test.groups)),
        chosen_rows=len(table.of("choose")) if one.chosen or other.chosen else 0,
        sides=(_side(one, left), _side(other, right)),
        quality=spread(left.quality - right.quality, test.groups),
        cost=spread(left.cost - right.cost, test.groups),
        same=int((left.served == right.served).sum()),
        apart=_apart(test, left, right),
    )


def named(replays: Replays, table: OutcomeTable, text: str) -> Named:
    """The policy that NAME or NAME:SETTING stands for; without a setting the one with most lead.

    Raises:
        ChoiceError: the setting is no number, or there are no rows to choose one on.
        FrontierError: there is no such policy, or the table cannot play it.
    """
    if text in replays.policies or text in replays.missing or text.startswith(ALWAYS):
        policy = replays[text]
        at, chosen = (_leading(replays, table, text), True) if policy.knob else (0.0, False)
        return Named(text, policy.knob, at, chosen)
    name, is_pair, setting = text.rpartition(":")
    policy = replays[name if is_pair else text]
    try:
        at = float(setting)
    except ValueError:
        at = math.nan
    if math.isnan(at):
        raise ChoiceError(f"{text}: {setting!r} is no setting: {policy.knob} is a number")
    return Named(name, policy.knob, at, chosen=False)


def _leading(replays: Replays, table: OutcomeTable, name: str) -> float:
    """The setting with the largest lead over a random mix of equal cost, on the choose rows.

    The rate at which the mix of the cheapest tier and the best single one buys quality is the price
    of quality, so neither a budget nor a taste goes in.
    """
    rows = table.of("choose")
    if not len(rows):
        raise ChoiceError(
            f"{table.source}: there are no rows to choose a setting of {name} on: give it as "
            f"{name}:SETTING"
        )
    policy = replays[name]
    curve: Curve = policy.curve(rows)
    cost, quality = rows.cost.mean(axis=0), rows.quality.mean(axis=0)
    best = best_single(table)
    dearer = cost[best] - cost[0]
    rate = (quality[best] - quality[0]) / dearer if dearer > 0.0 else 0.0
    at = int(np.argmax(curve.quality - rate * curve.cost))
    sweep = policy.sweep(rows)
    # A random mix is told by its two ends, and not by the settings of one draw.
    return shortest(sweep, at) if len(sweep.knob) == len(curve) else float(curve.knob[at])


def _side(policy: Named, done: Decisions) -> Side:
    return Side(policy=policy, cost=float(done.cost.mean()), quality=float(done.quality.mean()))


def _apart(test: OutcomeTable, left: Decisions, right: Decisions) -> list[Apart]:
    quality, cost = np.abs(left.quality - right.quality), np.abs(left.cost - right.cost)
    order = np.lexsort((test.ids, -cost, -quality))
    differ = order[(quality[order] > 0.0) | (cost[order] > 0.0)]
    return [
        Apart(
            row=int(at),
            served=(test.tiers[left.served[at]], test.tiers[right.served[at]]),
            quality=(float(left.quality[at]), float(right.quality[at])),
            cost=(float(left.cost[at]), float(right.cost[at])),
        )
        for at in differ
    ]
