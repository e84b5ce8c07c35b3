"""What the update after a judge is learned from: prompts with estimates, verdicts and grades."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from cascade.types import Verdict
from evals.training.rows import MIN_LABELS, TrainingError

Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPrompt:
    """One prompt that every tier answered.

    Attributes:
        prompt: its id.
        group: prompts made alike share one, and are never on both sides of a fold.
        split: "test" for rows that are only measured on, "calibrate" for those left alone.
        right: by tier, whether its answer is acceptable.
        estimate: by tier, P(acceptable) as the estimator gives it before any call, by a model that
            was not fitted on this prompt's group.
        verdicts: by tier, what the judge says of its answer, by a model that was not fitted on this
            prompt's group; tiers whose answer it cannot tell of are left out.
    """

    prompt: str
    group: str
    split: str
    right: Mapping[str, bool]
    estimate: Mapping[str, float]
    verdicts: Mapping[str, Verdict]

    def learned(self, tier: str) -> bool:
        """Whether there is a verdict to learn from; a final one states a fact, whatever is said."""
        verdict = self.verdicts.get(tier)
        return verdict is not None and not verdict.final


def labels_of(rows: Sequence[JudgedPrompt], tier: str) -> Labels:
    """Whether the tier's answers are right."""
    return np.array([row.right[tier] for row in rows], dtype=bool)


def groups_of(rows: Sequence[JudgedPrompt]) -> NDArray[np.str_]:
    """Of each row."""
    return np.array([row.group for row in rows])


def judged_of(rows: Sequence[JudgedPrompt], tiers: Sequence[str]) -> list[str]:
    """Tiers with verdicts, in order."""
    return [tier for tier in tiers if any(row.learned(tier) for row in rows)]


def check(rows: Sequence[JudgedPrompt], tiers: Sequence[str], folds: int) -> None:
    """Refuse what nothing can be learned from.

    Raises:
        TrainingError: too few rows or groups, or no verdict.
    """
    groups = len({row.group for row in rows})
    if len(rows) < MIN_LABELS or groups < folds:
        raise TrainingError(
            f"{len(rows)} rows of {groups} groups to fit on; it takes at least {MIN_LABELS} rows, "
            f"and a group for each of {folds} folds"
        )
    if not judged_of(rows, tiers):
        raise TrainingError("no row has a verdict to learn from, other than final ones")


def digest(rows: Sequence[JudgedPrompt]) -> str:
    """A hash of what is learned from."""
    content = [
        {**asdict(row), "verdicts": {t: _said(v) for t, v in row.verdicts.items()}}
        for row in sorted(rows, key=lambda row: row.prompt)
    ]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _said(verdict: Verdict) -> object:
    return [verdict.score, dict(verdict.others), dict(verdict.features), verdict.final]
