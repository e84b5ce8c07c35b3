"""Fixes a ladder's threshold on prompts that are not shown afterwards.

A judge's raw score becomes P(the small model's answer is right) by a fitted monotone map; answers
below accept_at go up. Which accept_at: a random mix of the two models buys quality at a fixed
rate, (q_large - q_small) / (c_large - c_small) a dollar. With that rate as the price of quality,
accuracy - rate * cost is, up to a constant, the ladder's lead over the mix that costs the same. The
threshold with the largest lead is taken, the lowest of equals: no budget and no taste goes in, only
the two models' prices. A ladder acts on doubt alone, so where the large model fails on the doubtful
prompts as well, the lead is small, and the curve shows it.

The map and the threshold see the same rows, so the lead found here is optimistic; what it is worth
is measured on the other half.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cascade.calibration import MonotoneMap
from cascade.pricing import PriceCard
from cascade.protocols import Backend, Judge
from evals.comparison import ComparisonError, uncached_dollars
from evals.datasets import Prompt
from evals.isotonic import fit_map
from evals.metrics import Point, auroc, mean, mix_quality

GRID = tuple(step / 20 for step in range(1, 20))
"""Thresholds that are tried: few and round, because a hundred rows cannot tell finer ones apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRow:
    """One prompt answered by both models.

    Attributes:
        score: the judge's raw score of the small answer; None when it could not tell.
        features: what the judge took it from.
        small_cost: dollars.
        large_cost: dollars.
    """

    kind: str
    score: float | None
    small_right: bool
    large_right: bool
    small_cost: float
    large_cost: float
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two models: how it is asked and what it costs."""

    backend: Backend
    card: PriceCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the ladder does on the rows with one threshold.

    Attributes:
        accept_at: calibrated score from which the small answer is taken.
        escalated: share of rows that go up.
        cost: mean dollars a prompt, the small call always included.
        mix_accuracy: expected accuracy of the random mix of equal cost.
    """

    accept_at: float
    escalated: float
    accuracy: float
    cost: float
    mix_accuracy: float

    @property
    def lead(self) -> float:
        """Accuracy above the mix of equal cost."""
        return self.accuracy - self.mix_accuracy


async def measure(
    prompts: Sequence[Prompt], sides: tuple[Side, Side], judge: Judge, done: Callable[[], None]
) -> list[FitRow]:
    """Ask both models every prompt, one prompt at a time, and have the small answer judged.

    The judge is the service's own, so that a score means here what it means there.

    Raises:
        BackendError: a model did not answer.
        JudgeError: the judge could not judge.
    """
    small, large = sides
    rows = []
    for prompt in prompts:
        request = prompt.request().asking(judge.needs)
        first = await small.backend.complete(request)
        second = await large.backend.complete(prompt.request())
        verdict = await judge.judge(request, first)
        rows.append(
            FitRow(
                kind=prompt.kind,
                score=verdict.score,
                small_right=prompt.right(first.text),
                large_right=prompt.right(second.text),
                small_cost=uncached_dollars(small.card, first.usage),
                large_cost=uncached_dollars(large.card, second.usage),
                features=verdict.features,
            )
        )
        done()
    return rows


def fit(rows: Sequence[FitRow]) -> MonotoneMap:
    """The map from the judge's score to P(the small answer is right).

    Raises:
        ComparisonError: the judge could tell of no row.
    """
    told = [row for row in rows if row.score is not None]
    if not told:
        raise ComparisonError(
            "the judge could tell of no answer; does the small model report log probabilities?"
        )
    return fit_map([row.score or 0.0 for row in told], [row.small_right for row in told])


def curve(rows: Sequence[FitRow], fitted: MonotoneMap) -> list[Candidate]:
    """One candidate for each threshold of the grid, lowest first; rows must not be empty."""
    small = Point(mean([row.small_cost for row in rows]), mean([row.small_right for row in rows]))
    large = Point(mean([row.large_cost for row in rows]), mean([row.large_right for row in rows]))
    return [_candidate(rows, fitted, at, (small, large)) for at in GRID]


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the largest lead over the mix; of equals the first."""
    return max(candidates, key=lambda candidate: candidate.lead)


def _candidate(
    rows: Sequence[FitRow], fitted: MonotoneMap, accept_at: float, ends: tuple[Point, Point]
) -> Candidate:
    ups = [row.score is None or fitted(row.score) < accept_at for row in rows]
    pairs = list(zip(rows, ups, strict=True))
    cost = mean([row.small_cost + up * row.large_cost for row, up in pairs])
    return Candidate(
        accept_at=accept_at,
        escalated=mean(ups),
        accuracy=mean([row.large_right if up else row.small_right for row, up in pairs]),
        cost=cost,
        mix_accuracy=mix_quality(*ends, cost),
    )


def ranking(rows: Sequence[FitRow], feature: str) -> float | None:
    """AUROC of a feature for the small answer being right; fewer tokens count as better.

    None where the feature is missing, or all rows are right, or all wrong.
    """
    if any(feature not in row.features for row in rows):
        return None
    sign = -1.0 if feature == "tokens" else 1.0
    return auroc([sign * row.features[feature] for row in rows], [row.small_right for row in rows])


def artifact(
    rows: Sequence[FitRow],
    fitted: MonotoneMap,
    chosen: Candidate,
    prompts: Sequence[Prompt],
    *,
    judge: Mapping[str, Any],
    about: Mapping[str, Any],
) -> str:
    """The map as the JSON file that `cascade.calibration.load_map` reads.

    Args:
        rows: what it was fitted on.
        fitted: the map.
        chosen: the threshold that goes with it.
        prompts: where the rows came from.
        judge: type and options of the judge whose scores were fitted.
        about: what else a reader of the file should know.
    """
    meta = {
        **about,
        "rows": len(rows),
        "prompts_sha256": digest(prompts),
        "base_rate": round(mean([row.small_right for row in rows]), 4),
        "accept_at": chosen.accept_at,
        "fitted_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    knots = {
        "x": [round(x, 6) for x in fitted.x],
        "y": [round(y, 6) for y in fitted.y],
    }
    whole = {"kind": "monotone_map", "fitted_for": dict(judge), **knots, "meta": meta}
    return json.dumps(whole, indent=2) + "\n"


def digest(prompts: Sequence[Prompt]) -> str:
    """SHA-256 over what was asked and what was taken for right, in order."""
    asked = [[prompt.id, prompt.messages, prompt.params(), prompt.reference] for prompt in prompts]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
