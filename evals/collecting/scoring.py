"""How good answers are: by their prompt's scorer, or by a model that compares texts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.collecting.asking import Row
from evals.scorers import JUDGE, SCORERS, SIMILARITY

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors of length 1."""


def qualities(rows: Sequence[Row], tiers: Sequence[str], encode: Encode | None = None) -> Any:
    """Each answer's score in [0, 1], of shape (rows, tiers); NaN where there is none.

    Args:
        rows: what came of each prompt.
        tiers: the columns.
        encode: needed where a scorer is `similarity`.
    """
    similar = _similarities(rows, encode) if encode is not None else {}
    found = np.full((len(rows), len(tiers)), np.nan)
    for at, row in enumerate(rows):
        for column, tier in enumerate(tiers):
            score = _score(row, tier, similar)
            found[at, column] = np.nan if score is None else score
    return found


def _score(row: Row, tier: str, similar: Mapping[tuple[str, str], float]) -> float | None:
    scorer = row.prompt.scorer
    if tier not in row.answers:
        return None
    if scorer == JUDGE:
        return row.grades[tier].score if tier in row.grades else None
    answer = row.answers[tier].text
    if scorer != SIMILARITY:
        return float(SCORERS[scorer](answer, row.prompt.reference))
    wanted, least = _wanted(row.prompt.reference)
    found = similar[answer, wanted]
    return found if least is None else float(found >= least)


def _similarities(rows: Sequence[Row], encode: Encode) -> dict[tuple[str, str], float]:
    """The cosine of answer and reference, cut off at 0, by the two."""
    pairs = [
        (answer.text, _wanted(row.prompt.reference)[0])
        for row in rows
        if row.prompt.scorer == SIMILARITY
        for answer in row.answers.values()
    ]
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    if not texts:
        return {}
    vectors = dict(zip(texts, encode(texts), strict=True))
    return {
        (one, other): float(np.clip(vectors[one] @ vectors[other], 0.0, 1.0))
        for one, other in pairs
    }


def _wanted(reference: Any) -> tuple[str, float | None]:
    """The text to be alike to, and from where on it is alike enough."""
    if isinstance(reference, str):
        return reference, None
    return reference["text"], reference.get("at_least")
