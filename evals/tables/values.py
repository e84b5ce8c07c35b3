"""Columns as numbers, texts and messages; what is none is refused by its row and column."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cascade.types import Json
from evals.tables.columns import Columns, TableError
from evals.tables.reading import Raw, objects

Vector = NDArray[np.float64]

_UNKNOWN: Final[tuple[Any, ...]] = (None, "")
_LABELS: Final[Mapping[str, float]] = {"true": 1.0, "false": 0.0}


def column_of(raw: Raw, mapping: Columns, name: str) -> str | None:
    """The column of that name's content; None where none was named and none is called so."""
    column = mapping.of(name)
    return column if name in mapping.others or raw.has(column) else None


def numbers(raw: Raw, column: str, *, most: float = math.inf) -> Vector:
    """The column's numbers from 0 to `most`, of shape (rows,); NaN where a field is empty or null.

    Raises:
        TableError: a row lacks the column or holds no such number; not-a-number is none.
    """
    values = raw.values(column)
    if isinstance(values, np.ndarray):
        found = np.where((values < 0) | (values > most) | np.isinf(values), -1.0, values)
    else:
        found = np.array([_number(value, most) for value in values], dtype=np.float64)
    wrong = np.flatnonzero(found < 0)
    if len(wrong):
        at = int(wrong[0])
        must = "at least 0" if math.isinf(most) else f"from 0 to {most:g}"
        raise TableError(
            f"{raw.place(at)}: {column}: must be a number {must}, not {objects(values)[at]!r}"
        )
    return found


def texts(raw: Raw, column: str) -> list[str]:
    """The column's values as texts; empty where a field is null.

    Raises:
        TableError: a row lacks the column, or holds an object or a list.
    """
    values = objects(raw.values(column))
    found = [value if type(value) is str else _plain(value) for value in values]
    for at, value in enumerate(found if None in found else ()):
        if value is None:
            raise TableError(f"{raw.place(at)}: {column}: must be a text, not {values[at]!r}")
    return [value or "" for value in found]


def conversations(raw: Raw, column: str) -> list[Sequence[Json]]:
    """The column's prompts as messages: a text is what a user says.

    Raises:
        TableError: a row lacks the column, or holds neither a text nor a list of messages.
    """
    found: list[Sequence[Json]] = []
    for at, value in enumerate(raw.values(column)):
        if isinstance(value, str):
            found.append([{"role": "user", "content": value}])
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            found.append(value)
        else:
            raise TableError(
                f"{raw.place(at)}: {column}: must be a text or a list of messages, not {value!r}"
            )
    return found


def is_label(value: Any) -> bool:
    """Whether a value can say how good an answer was, or that this is not known."""
    return not _number(value, 1.0) < 0


def _plain(value: Any) -> str | None:
    """The value as a text; None of what holds others."""
    if isinstance(value, Mapping | list):
        return None
    return "" if value is None else str(value)


def _number(value: Any, most: float) -> float:
    """The number that a value stands for; NaN where it is unknown, below 0 where there is none."""
    if value in _UNKNOWN:
        return math.nan
    label = _LABELS.get(str(value).strip().lower()) if isinstance(value, str | bool) else None
    if label is not None:
        return label if most <= 1.0 else -1.0  # a truth value is no dollars
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return -1.0
    return number if 0.0 <= number <= most and math.isfinite(number) else -1.0
