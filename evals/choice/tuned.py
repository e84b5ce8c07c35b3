"""Chooses a policy's setting on the choose rows and says on the test rows what it is worth.

With several candidates the test rows decide how far to go, from the strictest on, and the first
that cannot be certified ends the walk (Learn then Test: A. Angelopoulos, S. Bates, E. Candes, M.
Jordan, L. Lei, 2021). Their order comes from the choose rows, so that trying many costs nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evals.choice.bounds import Paired, at_least, holds, paired, rows_needed
from evals.choice.goals import (
    ROOM,
    ChoiceError,
    Goal,
    Grounds,
    Picked,
    best_single,
    largest_group,
    plain,
    roomy,
    within_budget,
)
from evals.choice.means import Spread, spread
from evals.frontier.known import complete
from evals.frontier.policies import Replays, replayed
from evals.frontier.replayed import Replayed
from evals.frontier.sweep import Decisions
from evals.tables import OutcomeTable

STRICTEST: Final = 3.0
"""Standard errors of room that the strictest of several candidates has."""
_HIGHEST: Final = 1.5
"""Share of the best single model's quality up to which a bound is looked for."""
_UNTUNED: Final = frozenset({"random", "oracle"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What a setting does on the test rows; intervals are 95 % bootstrap ones over groups.

    Attributes:
        rows: how many there are.
        groups: how many of them are not alike.
        cost: dollars a request.
        quality: in the mean.
        share: of the best single model's quality.
        shares: of the answers, by tier.
        other_cost: of the best single model, dollars a request.
        other_quality: its quality.
    """

    rows: int
    groups: int
    cost: Spread
    quality: Spread
    share: Spread
    shares: Sequence[float]
    other_cost: float
    other_quality: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What can be said with probability 1 - delta, each for itself.

    Attributes:
        met: whether the goal is met; True of a budget, of which nothing is claimed.
        quality: the mean quality is at least this; None of the last of several candidates, of which
            only the goal is certified.
        share: the same as a share of the best single model's; None where that is never right, too.
        needed: test rows that would probably carry the goal's claim, where these do not; None where
            no number would, or the goal is met.
        tried: candidates that were tried on the test rows.
    """

    met: bool
    quality: float | None
    share: float | None
    needed: int | None
    tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A policy's setting, what it was chosen for and what it is worth.

    Attributes:
        policy: its name.
        knob: what its setting is called.
        best: the best single model, by the rows that are not the test's.
        chosen: the setting, and what it does on the choose rows.
        chosen_rows: how many these are.
        just: the cheapest setting that meets the goal on the choose rows and leaves no room; None
            of a budget.
        candidates: settings that the test rows could have decided between.
    """

    goal: Goal
    policy: str
    knob: str
    best: str
    chosen: Picked
    chosen_rows: int
    just: Picked | None
    candidates: int
    tested: Tested
    claim: Claim


def tune(table: OutcomeTable, name: str, goal: Goal, *, candidates: int = 1) -> Tuned:
    """Choose a policy's setting for a goal.

    Args:
        table: rows of all three splits.
        name: of a policy in `evals.frontier.policies`.
        goal: what it is to meet.
        candidates: settings that are tried on the test rows; one is chosen on the choose rows.

    Raises:
        ChoiceError: no setting meets the goal on the choose rows, or there are no rows to choose or
            to test on.
        FrontierError: the table cannot be played.
    """
    table, replays = complete(table), replayed(table)
    policy = _tunable(replays, name)
    rows, test = _parts(table)
    best = best_single(table)
    grounds = Grounds(
        policy=policy, rows=rows, best=best, largest=largest_group(table), tested=len(test)
    )
    if goal.kind == "budget":
        chosen, just, tried = within_budget(grounds, goal.value), None, 1
    else:
        just = plain(grounds, goal)
        chosen, tried = _walked(grounds, test, goal, _candidates(grounds, goal, candidates))
    done = policy.decisions(test, chosen.knob)
    return Tuned(
        goal=goal,
        policy=name,
        knob=policy.knob,
        best=table.tiers[best],
        chosen=chosen,
        chosen_rows=len(rows),
        just=just,
        candidates=candidates,
        tested=tested(test, done, best),
        claim=_claim(grounds, test, goal, done, tried),
    )


def tested(test: OutcomeTable, done: Decisions, best: int) -> Tested:
    """What decisions come to on the test rows."""
    other = test.quality[:, best]
    count = len(test.tiers)
    return Tested(
        rows=len(test),
        groups=len(np.unique(test.groups)),
        cost=spread(done.cost, test.groups),
        quality=spread(done.quality, test.groups),
        share=spread(done.quality, test.groups, over=other),
        shares=(np.bincount(done.served, minlength=count) / len(test)).tolist(),
        other_cost=float(test.cost[:, best].mean()),
        other_quality=float(other.mean()),
    )


def _tunable(replays: Replays, name: str) -> Replayed:
    if name in _UNTUNED:
        raise ChoiceError(f"policy {name} is there to be compared with, and cannot be run")
    return replays[name]


def _parts(table: OutcomeTable) -> tuple[OutcomeTable, OutcomeTable]:
    rows, test = table.of("choose"), table.of("test")
    for part, use in ((rows, "choose"), (test, "test")):
        if not len(part):
            raise ChoiceError(f"{table.source}: there are no rows to {use} on")
    return rows, test


def _candidates(grounds: Grounds, goal: Goal, count: int) -> list[Picked]:
    """Settings to be tried on the test rows, from the strictest on.

    Where none has the room that is wanted, the best there is is tried all the same: what is missing
    is said on rows that it was not chosen on.
    """
    doubts = [ROOM] if count == 1 else np.linspace(STRICTEST, 0.0, count).tolist()
    found: list[Picked] = []
    for doubt in doubts:
        picked = roomy(grounds, goal, doubt)
        if picked is not None and all(picked.knob != each.knob for each in found):
            found.append(picked)
    return found or [within_budget(grounds, math.inf)]


def _walked(
    grounds: Grounds, test: OutcomeTable, goal: Goal, candidates: Sequence[Picked]
) -> tuple[Picked, int]:
    """The last candidate that is certified before one is not, and how many were tried."""
    passed = candidates[0]
    for tried, candidate in enumerate(candidates, 1):
        if not holds(_paired(grounds, test, goal, candidate), goal.level, goal.delta):
            return passed, tried
        passed = candidate
    return passed, len(candidates)


def _paired(grounds: Grounds, test: OutcomeTable, goal: Goal, candidate: Picked) -> Paired:
    done = grounds.policy.decisions(test, candidate.knob)
    return goal.paired(test, done.quality, grounds.best, grounds.largest)


def _claim(grounds: Grounds, test: OutcomeTable, goal: Goal, done: Decisions, tried: int) -> Claim:
    other, largest = test.quality[:, grounds.best], grounds.largest
    quality = share = None
    if tried == 1:
        quality = at_least(paired(done.quality, test.groups, largest=largest), goal.delta)
    if tried == 1 and other.any():
        beside = paired(done.quality, test.groups, yardstick=other, largest=largest)
        share = at_least(beside, goal.delta, highest=_HIGHEST)
    if goal.kind == "budget":
        return Claim(met=True, quality=quality, share=share, needed=None, tried=tried)
    found = goal.paired(test, done.quality, grounds.best, largest)
    met = holds(found, goal.level, goal.delta)
    needed = None if met else rows_needed(found, goal.level, goal.delta)
    if needed is not None:
        needed = max(needed, len(test) + 1)
    return Claim(met=met, quality=quality, share=share, needed=needed, tried=tried)
