"""Whether what happens now is out of the ordinary, held against its own past.

The hours of the last week say what is ordinary: what happens now must be beyond the worst of them
by more than chance explains, and far enough from the usual hour to be worth a look.

More than chance: the chance of such a mean, if the worst hour's were the true one, is at most
LEVEL. For shares this is Hoeffding's bound exp(-n KL(now, worst)), which holds for any values in
[0, 1]; for costs it is the normal bound exp(-z^2 / 2) with the hour's own standard error. A look is
wrong with at most that chance if the things counted do not depend on each other. With a look a
minute that is at most 43,200 LEVEL = 4 % a month for each subject. Requests of one conversation do
depend on each other; that the worst hour of the week is the measure, and not the mean, makes up for
it.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 1e-6
LEAST_NUMBER = 30
LEAST_HOURS = 24
"""Hours of the past with enough in them, without which nothing is ordinary yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What was counted in an hour.

    Attributes:
        number: of things; of weighted things, as many equal ones as say as much.
        mean: of them.
        deviation: their standard deviation; None for shares, which need none.
    """

    number: float
    mean: float
    deviation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a change is worth a look.

    Attributes:
        falls: what is bad is a fall, not a rise.
        least: how far from the usual hour: in the values' unit, or relative to the usual one.
        relative: which of the two.
    """

    falls: bool = False
    least: float
    relative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """Something out of the ordinary: now, in the usual hour and in the worst one."""

    now: float
    usual: float
    worst: float
    number: float


def jump(now: Hour, past: Sequence[Hour], rule: Rule) -> Jump | None:
    """The jump, if there is one.

    Args:
        now: the last hour.
        past: earlier hours, in any order.
        rule: which way is bad, and how far is worth a look.
    """
    known = [hour.mean for hour in past if hour.number >= LEAST_NUMBER]
    if now.number < LEAST_NUMBER or len(known) < LEAST_HOURS:
        return None
    worst = min(known) if rule.falls else max(known)
    usual = statistics.median(known)
    beyond = now.mean < worst if rule.falls else now.mean > worst
    far = abs(now.mean - usual) >= rule.least * (abs(usual) if rule.relative else 1.0)
    if not (beyond and far and _unlikely(now, worst)):
        return None
    return Jump(now=now.mean, usual=usual, worst=worst, number=now.number)


def _unlikely(now: Hour, worst: float) -> bool:
    if now.deviation is None:
        evidence = now.number * _divergence(now.mean, worst)
    elif now.deviation == 0:
        return True
    else:
        evidence = now.number * ((now.mean - worst) / now.deviation) ** 2 / 2.0
    return evidence >= -math.log(LEVEL)


def _divergence(p: float, q: float) -> float:
    """Kullback and Leibler's, of a share p from a share q."""
    if p == q:
        return 0.0
    parts = ((p, q), (1.0 - p, 1.0 - q))
    if any(a > 0 and b <= 0 for a, b in parts):
        return math.inf
    return sum(a * math.log(a / b) for a, b in parts if a > 0)
