"""Which tiers a table has: as stated, by their columns' names, or by what the columns hold."""

import json
from collections.abc import Mapping
from typing import Final

import numpy as np

from evals.tables.columns import OF_A_TIER, QUALITY, SINGLE, Columns, TableError, measure_of
from evals.tables.outcome_table import Matrix
from evals.tables.prices import Prices
from evals.tables.reading import ABSENT, Raw, objects
from evals.tables.values import is_label

TIERS_NOTE: Final = "cascade.tiers"
"""What a file of ours says its tiers are, in their order."""

NESTED: Final = "scores"
"""A column that holds an object of scores by tier."""

_LEAST_TIERS = 2
_MOST_SAY = 0.75
"""From this share of qualities on, a column is a tier's and what else it holds are faults."""


def tier_columns(raw: Raw, mapping: Columns) -> dict[str, str]:
    """The column of the quality by tier: as stated, or found by their names and contents.

    Raises:
        TableError: there are fewer than two.
    """
    tiers = dict(mapping.tiers) or _ours(raw) or _found(raw, mapping)
    if len(tiers) < _LEAST_TIERS:
        raise TableError(
            f"{raw.path}: fewer than two tiers: name their columns, as --column small=weak "
            f"--column large=strong; there are: {', '.join(raw.columns)}"
        )
    return tiers


def refuse_unknown_tiers(
    raw: Raw, mapping: Columns, prices: Prices, tiers: Mapping[str, str]
) -> None:
    """Refuse a name that stands for no tier.

    Raises:
        TableError: a price, a column or a row's scores are of a tier that is not there.
    """
    named = [pair[1] for name in mapping.others if (pair := measure_of(name))]
    known = f"; the tiers are {', '.join(tiers)}"
    if unknown := [tier for tier in (*prices, *named) if tier not in tiers]:
        raise TableError(f"{raw.path}: there is no tier {unknown[0]!r}{known}")
    if mapping.tiers:
        return
    for name in raw.columns:
        pair = measure_of(name)
        if pair and pair[1] not in tiers:
            raise TableError(f"{raw.path}: {name}: there is no tier {pair[1]!r}{known}")
    if any(column == f"{NESTED}.{tier}" for tier, column in tiers.items()):
        for at, scores in enumerate(raw.values(NESTED)):
            more = scores.keys() - tiers.keys() if isinstance(scores, Mapping) else ()
            if more:
                raise TableError(
                    f"{raw.place(at)}: {NESTED}: there is no tier {min(more)!r}{known}"
                )


def refuse_unused(raw: Raw, mapping: Columns, *, long: bool) -> None:
    """Refuse a stated column that is not there, or that says nothing in a table of this form.

    Raises:
        TableError: there is one.
    """
    for name, column in mapping.others.items():
        if not raw.has(column):
            raw.values(column)  # says so
        measure, _, tier = name.partition(".")
        if measure not in OF_A_TIER or bool(tier) != long:
            continue
        if long:
            raise TableError(
                f"{name}={column}: each row is an answer of one tier: say {measure}={column}"
            )
        raise TableError(f"{name}={column}: of which tier? Say it as {measure}.TIER={column}")


def by_cost(tiers: Mapping[str, str], dollars: Mapping[str, Matrix]) -> dict[str, str]:
    """The tiers from the cheapest to the dearest; as they are where a cost is not known."""
    if any(np.isnan(dollars[tier]).any() for tier in tiers):
        return dict(tiers)
    return {tier: tiers[tier] for tier in sorted(tiers, key=lambda name: dollars[name].mean())}


def _ours(raw: Raw) -> dict[str, str]:
    """Columns that are called `quality.TIER`, in the order that the file states."""
    names = [name for name in raw.columns if (measure_of(name) or ("", ""))[0] == QUALITY]
    found = {name.partition(".")[2]: name for name in names}
    order = json.loads(raw.notes.get(TIERS_NOTE, "[]"))
    return {tier: found[tier] for tier in dict.fromkeys((*order, *found)) if tier in found}


def _found(raw: Raw, mapping: Columns) -> dict[str, str]:
    """Every column that only holds what could be a quality stands for a tier of its name.

    Raises:
        TableError: a row is at fault in a column that is one but for a few rows.
    """
    taken = {mapping.of(name) for name in SINGLE} | set(mapping.others.values())
    found = {
        name: name
        for name in raw.columns
        if name not in taken and measure_of(name) is None and _is_quality(raw, name)
    }
    nested = next((one for one in raw.columns.get(NESTED, ()) if isinstance(one, Mapping)), None)
    if isinstance(nested, Mapping):
        found |= {name: f"{NESTED}.{name}" for name in nested}
    return found


def _is_quality(raw: Raw, name: str) -> bool:
    """Whether each value could be a quality.

    Raises:
        TableError: they could, but for a few that are missing, not-a-number or beyond 0 to 1.
    """
    values = objects(raw.columns[name])
    faults = [at for at, value in enumerate(values) if not is_label(value)]
    if not faults:
        return True
    others = sum(not _is_gap(values[at]) for at in faults)
    labels = sum(value is not None and value != "" for value in values) - len(faults)
    if not labels or labels < _MOST_SAY * (labels + others):
        return False
    value = values[faults[0]]
    fault = "is missing" if value is ABSENT else f"must be a number from 0 to 1, not {value!r}"
    raise TableError(
        f"{raw.place(faults[0])}: {name}: {fault}; if that is no tier's column, name those that "
        "are, as --column small=weak --column large=strong"
    )


def _is_gap(value: object) -> bool:
    """Whether it says nothing of what the column holds."""
    return value is ABSENT or str(value).strip().lower() == "nan"
