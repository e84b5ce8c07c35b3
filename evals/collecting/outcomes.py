"""What was collected, as an outcome table."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cascade.types import Beliefs
from evals.collecting.asking import Row
from evals.collecting.journal import Answered, Judged
from evals.collecting.scoring import Encode, qualities
from evals.datasets import DatasetError, Prompt
from evals.tables import OutcomeTable, SplitRule
from evals.tables.rows import group_of, text_of
from evals.tables.splits import NAMES

Matrix = NDArray[np.float64]


def table_of(
    rows: Sequence[Row],
    tiers: Sequence[str],
    *,
    source: str,
    split: SplitRule,
    predicted: Sequence[Beliefs | None] | None = None,
    encode: Encode | None = None,
) -> OutcomeTable:
    """The rows that at least one tier answered.

    Args:
        rows: what came of each prompt.
        tiers: from the cheapest to the best.
        source: the file's name.
        split: parts the prompts that do not say theirs.
        predicted: what was believed of each row before any call; None: nothing, of one or all.
        encode: texts to unit vectors, for the scorer `similarity`.

    Raises:
        DatasetError: nothing was answered.
    """
    at = [number for number, row in enumerate(rows) if row.answers]
    kept = [rows[number] for number in at]
    if not kept:
        raise DatasetError(f"{source}: no tier answered any prompt")
    texts = [text_of(row.prompt.messages) for row in kept]
    groups = [_group(row.prompt, text) for row, text in zip(kept, texts, strict=True)]
    stated = {g: row.prompt.split for row, g in zip(kept, groups, strict=True) if row.prompt.split}
    pairs = zip(kept, groups, strict=True)
    return OutcomeTable(
        tiers=tuple(tiers),
        ids=np.array([row.prompt.id for row in kept]),
        groups=np.array(groups),
        kinds=np.array([row.prompt.kind for row in kept]),
        sessions=np.array([row.prompt.session for row in kept]),
        splits=np.array(
            [_split(row.prompt.split or stated.get(g, ""), g, split) for row, g in pairs]
        ),
        quality=qualities(kept, tiers, encode),
        cost=_each(kept, tiers, lambda row, tier: _dollars(row.answers.get(tier))),
        judged=_each(kept, tiers, _score),
        judge_cost=_each(kept, tiers, _judged_for),
        predicted=np.full((len(kept), len(tiers)), np.nan)
        if predicted is None
        else np.array([_believed(predicted[i], tiers) for i in at]),
        lengths=np.array([len(text) for text in texts], dtype=np.float64),
        prompts=texts,
        source=source,
    )


def texts_of(rows: Sequence[Row], tiers: Sequence[str]) -> dict[str, list[str | None]]:
    """The answers by tier, of the rows that are in the table; None where there is none."""
    kept = [row for row in rows if row.answers]
    return {
        tier: [row.answers[tier].text if tier in row.answers else None for row in kept]
        for tier in tiers
    }


def _each(
    rows: Sequence[Row], tiers: Sequence[str], of: Callable[[Row, str], float | None]
) -> Matrix:
    found = [[of(row, tier) for tier in tiers] for row in rows]
    return np.array(found, dtype=np.float64)


def _dollars(line: Answered | Judged | None) -> float | None:
    return None if line is None or line.dollars is None else float(line.dollars)


def _score(row: Row, tier: str) -> float | None:
    return row.verdicts[tier].score if tier in row.verdicts else None


def _judged_for(row: Row, tier: str) -> float | None:
    """Dollars of the verdict; 0 without one, None where nobody says."""
    return _dollars(row.verdicts[tier]) if tier in row.verdicts else 0.0


def _believed(beliefs: Beliefs | None, tiers: Sequence[str]) -> list[float]:
    return [np.nan if beliefs is None else beliefs.mean.get(tier, np.nan) for tier in tiers]


def _group(prompt: Prompt, text: str) -> str:
    """As stated; else prompts with one text are alike, and without a text none are."""
    return prompt.group or (group_of(text) if text else prompt.id)


def _split(said: str, group: str, rule: SplitRule) -> str:
    return NAMES[said.lower()] if said else rule.of(group)
