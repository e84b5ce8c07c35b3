"""Loads outcome tables: a row a prompt with columns for each tier, or a row an answer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from evals.tables import rows
from evals.tables.answers import is_long, widened
from evals.tables.columns import SHARES, Columns
from evals.tables.outcome_table import Matrix, OutcomeTable, Texts
from evals.tables.prices import Prices, costs
from evals.tables.reading import Raw, read
from evals.tables.splits import SplitRule
from evals.tables.tiers import (
    TIERS_NOTE,
    by_cost,
    refuse_unknown_tiers,
    refuse_unused,
    tier_columns,
)
from evals.tables.values import column_of, numbers


def load(
    path: Path,
    columns: Columns | None = None,
    *,
    split: SplitRule | None = None,
    prices: Prices | None = None,
) -> OutcomeTable:
    """The outcomes of a file: JSON Lines, CSV (also .gz) or Parquet.

    Tiers that the mapping does not order stand in the order of the file, or, where the file is not
    ours and every cost is known, from the cheapest to the dearest.

    Args:
        path: ends in .jsonl, .csv or .parquet.
        columns: which column is what; each is called as in `evals.tables.columns` by itself.
        split: parts the rows that the file does not.
        prices: by tier, where the file has no dollars.

    Raises:
        TableError: it cannot be read, a column is missing, a value is not what it must be, an id is
            there twice, or a tier is unknown; says which file, row and column.
    """
    mapping, stated = columns or Columns(), prices or {}
    raw = read(path)
    long = is_long(raw, mapping)
    refuse_unused(raw, mapping, long=long)
    if long:
        raw, mapping = widened(raw, mapping)
    tiers = tier_columns(raw, mapping)
    refuse_unknown_tiers(raw, mapping, stated, tiers)
    quality = {tier: numbers(raw, column, most=1.0) for tier, column in tiers.items()}
    dollars = {tier: costs(raw, mapping, tier, stated.get(tier)) for tier in tiers}
    if not mapping.tiers and TIERS_NOTE not in raw.notes:
        tiers = by_cost(tiers, dollars)
    return _table(raw, mapping, split or SplitRule(), tiers, (quality, dollars))


def _table(
    raw: Raw,
    mapping: Columns,
    rule: SplitRule,
    tiers: Mapping[str, str],
    known: tuple[Mapping[str, Matrix], Mapping[str, Matrix]],
) -> OutcomeTable:
    """The table, whose qualities and dollars are known already."""
    prompts = rows.prompts(raw, mapping)
    ids = rows.ids(raw, mapping)
    groups = rows.groups(raw, mapping, prompts, ids)
    judged = _measures(raw, mapping, "judged", tiers)
    asked = column_of(raw, mapping, "prompt") is not None
    return OutcomeTable(
        tiers=tuple(tiers),
        ids=_array(ids),
        groups=_array(groups),
        kinds=_array(rows.optional(raw, mapping, "kind")),
        sessions=_array(rows.optional(raw, mapping, "session")),
        splits=_array(rows.splits(raw, mapping, groups, rule)),
        quality=_matrix(tiers, known[0].__getitem__),
        cost=_matrix(tiers, known[1].__getitem__),
        judged=judged,
        judge_cost=_judge_cost(raw, mapping, tiers, judged),
        predicted=_measures(raw, mapping, "predicted", tiers),
        lengths=np.array([len(prompt) if asked else np.nan for prompt in prompts], np.float64),
        prompts=prompts,
        source=raw.path.name,
    )


def _measures(raw: Raw, mapping: Columns, measure: str, tiers: Mapping[str, str]) -> Matrix:
    most = 1.0 if measure in SHARES else np.inf

    def of(tier: str) -> Matrix:
        column = column_of(raw, mapping, f"{measure}.{tier}")
        if column is None:
            return np.full(len(raw), np.nan)
        return numbers(raw, column, most=most)

    return _matrix(tiers, of)


def _judge_cost(raw: Raw, mapping: Columns, tiers: Mapping[str, str], judged: Matrix) -> Matrix:
    """0 where nobody judged and for a tier without such a column, else unknown where it is null."""
    found = _measures(raw, mapping, "judge_cost", tiers)
    stated = np.array([column_of(raw, mapping, f"judge_cost.{tier}") is not None for tier in tiers])
    # A file of ours holds a 0 where nobody judged; elsewhere such a field is often left empty.
    was_judged = ~np.isnan(judged) | (TIERS_NOTE in raw.notes)
    return np.where(np.isnan(found) & ~(stated & was_judged), 0.0, found)


def _matrix(tiers: Mapping[str, str], of: Callable[[str], Matrix]) -> Matrix:
    return np.stack([of(tier) for tier in tiers], axis=1)


def _array(values: Sequence[str]) -> Texts:
    return np.array(values, dtype=np.str_)
