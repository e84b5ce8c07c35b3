"""Certifies a threshold: with probability 1 - delta over the labels, its risk is at most alpha.

Learn then Test (A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, 2021): each threshold's
"its risk is above alpha" is a hypothesis with an exact binomial p-value, tested from strict to
loose. The first that cannot be rejected ends the walk, so testing many costs nothing, and the last
one rejected is the answer. The order must not come from the labels that are tested.

The guarantee holds for requests like those that were labelled, and for each risk by itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from scipy.stats import beta, binom

from cascade.errors import CascadeError

GRID = tuple(step / 100 for step in range(99, 0, -1))
"""Thresholds in the order of the walk, strict to loose."""
SOUGHT_LABELS = 1_000_000


class CertifyError(CascadeError):
    """What was asked for cannot be certified or refused."""

    code = "not_certifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One answer with its score and what became of it.

    Attributes:
        score: the judge's; None when it could not tell, which is never accepted.
        right: whether the answer is acceptable.
        strong_right: whether the strong model's answer is; None when it was not asked.
    """

    score: float | None
    right: bool
    strong_right: bool | None = None


class Count(NamedTuple):
    """Failures among trials."""

    failures: int
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What can be said of the threshold, or why nothing can.

    Attributes:
        threshold: answers that score at least this may be accepted; None when none is certified.
        labels: answers that were used.
        accepted: how many of them it accepts.
        count: failures among the trials that the risk is about.
        bound: upper end of the exact one-sided interval of the risk at 1 - delta; None without a
            threshold.
        more: how many more labels would probably do; 0 when certified, None when no number will.
        reason: one sentence.
    """

    risk: str
    alpha: float
    delta: float
    threshold: float | None
    labels: int
    accepted: int
    count: Count
    bound: float | None
    more: int | None
    reason: str

    @property
    def acceptance(self) -> float:
        """Share of answers accepted."""
        return self.accepted / self.labels


def _selective(rows: Sequence[Labelled], threshold: float) -> Count:
    taken = [row for row in rows if _accepts(row, threshold)]
    return Count(sum(not row.right for row in taken), len(taken))


def _joint(rows: Sequence[Labelled], threshold: float) -> Count:
    return Count(sum(_accepts(row, threshold) and not row.right for row in rows), len(rows))


def _loss(rows: Sequence[Labelled], threshold: float) -> Count:
    lost = [_accepts(row, threshold) and not row.right and row.strong_right for row in rows]
    return Count(sum(map(bool, lost)), len(rows))


RISKS: Mapping[str, Callable[[Sequence[Labelled], float], Count]] = {
    "selective": _selective,
    "joint": _joint,
    "loss": _loss,
}
"""selective: P(wrong | accepted). joint: P(accepted and wrong). loss: P(accepted and wrong where
the strong model is right), at least what is lost against always asking the strong model."""


def certify(
    rows: Sequence[Labelled],
    *,
    risk: str,
    alpha: float,
    delta: float,
    grid: Sequence[float] = GRID,
) -> Certificate:
    """Find the loosest threshold whose risk is at most alpha, with probability 1 - delta.

    Args:
        rows: labelled answers that were used for nothing else: not to fit, not to choose the grid.
        risk: a name in `RISKS`.
        alpha: the risk that is allowed, between 0 and 1.
        delta: the chance that the guarantee is wrong, between 0 and 1.
        grid: thresholds, each below the one before; see `opening` for "selective".

    Raises:
        CertifyError: an argument is out of range, the grid is not in order, or there are fewer
            labels than any guarantee of that strength needs.
    """
    _refuse(rows, risk, alpha, delta, grid)
    count = RISKS[risk]
    passed: float | None = None
    for threshold in grid:
        failures, trials = count(rows, threshold)
        if binom.cdf(failures, trials, alpha) > delta:
            break
        passed = threshold
    tried = grid[0] if passed is None else passed
    found = count(rows, tried)
    certified = passed is not None
    more = 0 if certified else _more(rows, found, risk, alpha, delta)
    return Certificate(
        risk=risk,
        alpha=alpha,
        delta=delta,
        threshold=passed,
        labels=len(rows),
        accepted=sum(_accepts(row, tried) for row in rows),
        count=found,
        bound=upper_bound(found, delta) if certified else None,
        more=more,
        reason=_reason(certified, tried, found, alpha, more),
    )


def fewest_labels(alpha: float, delta: float) -> int:
    """Labels that a guarantee needs at least: all of them right, ln(delta) / ln(1 - alpha)."""
    return math.ceil(math.log(delta) / math.log1p(-alpha) - 1e-9)


def labels_for(rate: float, alpha: float, delta: float) -> int | None:
    """The fewest labels that certify alpha when a share `rate` of them fails, rounded up.

    None when the rate is alpha or more: then no number is enough.
    """
    if rate >= alpha:
        return None

    def enough(labels: int) -> bool:
        return bool(binom.cdf(math.ceil(rate * labels - 1e-9), labels, alpha) <= delta)

    return next(filter(enough, _growing(fewest_labels(alpha, delta))), None)


def upper_bound(count: Count, delta: float) -> float:
    """Upper end of the exact one-sided interval at 1 - delta (C. Clopper, E. Pearson, 1934)."""
    failures, trials = count
    return (
        1.0 if failures == trials else float(beta.ppf(1 - delta, failures + 1, trials - failures))
    )


def opening(
    scores: Sequence[float | None],
    labels: int,
    alpha: float,
    delta: float,
    grid: Sequence[float] = GRID,
) -> Sequence[float]:
    """The part of a grid to walk for a selective risk, from scores of *other* answers.

    A threshold that accepts hardly anything cannot be rejected whatever its risk, and would end the
    walk before it began. So the walk begins where twice the fewest labels are likely accepted.

    Args:
        scores: of answers that are not among the rows to be certified.
        labels: how many answers will be.
        alpha: see `certify`.
        delta: see `certify`.
        grid: what to cut.
    """
    wanted = min(1.0, 2 * fewest_labels(alpha, delta) / labels) if labels else 1.0
    for at, threshold in enumerate(grid):
        accepted = sum(score is not None and score >= threshold for score in scores)
        if accepted >= wanted * len(scores):
            return grid[at:]
    return grid[-1:]


def least_escalated(error: float, alpha: float) -> float:
    """Share that any method must escalate when the small model errs at this rate.

    (error - alpha) / (1 - alpha): even a perfect judge can only leave out wrong answers.
    """
    return max(0.0, (error - alpha) / (1 - alpha))


def _accepts(row: Labelled, threshold: float) -> bool:
    return row.score is not None and row.score >= threshold


def _growing(first: int) -> Sequence[int]:
    """Whole numbers that grow by at most half a hundredth, to look for a size in a few steps."""
    sizes = [first]
    while sizes[-1] < SOUGHT_LABELS:
        sizes.append(sizes[-1] + max(1, sizes[-1] // 200))
    return sizes


def _more(
    rows: Sequence[Labelled], count: Count, risk: str, alpha: float, delta: float
) -> int | None:
    rate = count.failures / count.trials if count.trials else 0.0
    needed = labels_for(rate, alpha, delta)
    if needed is None:
        return None
    if risk == "selective":  # of which only the accepted count
        share = max(count.trials, 1) / len(rows)
        needed = math.ceil(needed / share)
    return max(1, needed - len(rows))


def _reason(
    certified: bool,
    threshold: float,
    count: Count,
    alpha: float,
    more: int | None,
) -> str:
    seen = f"{count.failures} failures in {count.trials} at {threshold:g}"
    if certified:
        return seen
    if more is None:
        return f"{seen}: not below {alpha:g}, so no number of labels certifies it"
    return f"{seen}: too few labels to tell it from {alpha:g}; about {more} more would"


def _refuse(
    rows: Sequence[Labelled], risk: str, alpha: float, delta: float, grid: Sequence[float]
) -> None:
    if risk not in RISKS:
        raise CertifyError(f"no risk {risk!r}; there are: {', '.join(RISKS)}", param="risk")
    for name, value in (("alpha", alpha), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise CertifyError(f"must lie between 0 and 1, not {value:g}", param=name)
    if not grid or any(later >= earlier for earlier, later in pairwise(grid)):
        raise CertifyError("thresholds must fall, and there must be one", param="grid")
    fewest = fewest_labels(alpha, delta)
    if len(rows) < fewest:
        raise CertifyError(
            f"{len(rows)} labels cannot certify {alpha:g} at {delta:g} even if every answer is "
            f"right: it takes {fewest}, {fewest - len(rows)} more",
            param="labels",
        )
    if risk == "loss" and any(row.strong_right is None for row in rows):
        raise CertifyError(
            "the strong model's answer is missing on some rows", param="strong_right"
        )
