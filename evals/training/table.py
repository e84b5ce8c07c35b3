"""Outcome tables of any origin: JSON Lines (also .gz), CSV or Parquet, each fault by its line."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cascade.types import ChatRequest, Json
from classifiers.features import TAG
from evals.training.rows import TrainingError

OURS = ("prompt", "group", "kind", "split")
"""What a column may stand for besides a tier or, as `tag.NAME`, a tag."""

_UNKNOWN: tuple[Any, ...] = (None, "")
_NESTED = "scores"
"""A column that holds an object of scores by tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table.

    Attributes:
        request: as if it had been sent.
        labels: how acceptable the answer was, in [0, 1], by tier; NaN where it is not known.
        group: rows that are alike share one.
        kind: what metrics are told apart by.
        split: "test" for rows that are only measured on; "calibrate" ones are left alone.
    """

    request: ChatRequest
    labels: Mapping[str, float]
    group: str
    kind: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column is what.

    Attributes:
        tiers: column by tier, from the cheapest to the best; none: every column of numbers.
        others: column by one of OURS, and by `tag.NAME`.
    """

    tiers: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """The column of one of OURS."""
        return self.others.get(name, name)


def columns(pairs: Sequence[str]) -> Columns:
    """The mapping that texts such as "prompt=question" and "small=weak" stand for.

    Raises:
        TrainingError: one is no such text, or says a name twice.
    """
    tiers: dict[str, str] = {}
    others: dict[str, str] = {}
    for pair in pairs:
        name, is_pair, column = pair.partition("=")
        if not name or not is_pair or not column:
            raise TrainingError(f"{pair!r} is not NAME=COLUMN, as prompt=question or small=weak")
        known = others if name in OURS or name.startswith(TAG) else tiers
        if known.setdefault(name, column) != column:
            raise TrainingError(f"{name} is given two columns: {known[name]} and {column}")
    return Columns(tiers=tiers, others=others)


def read_table(path: Path, mapping: Columns) -> list[Line]:
    """The rows of a table.

    Raises:
        TrainingError: it cannot be read, a column is missing, or a value is not what it must be;
            says on which line.
    """
    rows = list(_rows(path))
    if not rows:
        raise TrainingError(f"{path}: holds no rows")
    tiers = dict(mapping.tiers) or _numbers([row for _, row in rows], mapping)
    if len(tiers) < 2:  # noqa: PLR2004 - one tier leaves nothing to choose
        there = ", ".join(rows[0][1])
        raise TrainingError(
            f"{path}: fewer than two tiers: name their columns, as --column small=weak --column "
            f"large=strong; there are: {there}"
        )
    return [_line(place, row, mapping, tiers) for place, row in rows]


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    kinds = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl}
    names = [suffix for suffix in path.suffixes if suffix != ".gz"]
    read = kinds.get(names[-1] if names else "")
    if read is None:
        raise TrainingError(f"{path}: a table ends in .jsonl, .csv (also .gz) or .parquet")
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise TrainingError(f"{path}: cannot be read: {error}") from None
    return read(path, data)


def _jsonl(path: Path, data: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(_text(path, data).split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise TrainingError(f"{place}: not JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise TrainingError(f"{place}: a line must be a JSON object")
        yield place, row


def _csv(path: Path, data: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(_text(path, data), newline=""), strict=True)
    try:
        for row in reader:
            place = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                raise TrainingError(f"{place}: has not as many fields as the first line")
            yield place, row
    except csv.Error as error:
        raise TrainingError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def _parquet(path: Path, data: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        from pyarrow import ArrowException, BufferReader  # noqa: PLC0415 - only this needs it
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ModuleNotFoundError:
        raise TrainingError(
            f"{path}: Parquet needs the package pyarrow: pip install 'cascade-router[train]'"
        ) from None
    try:
        rows = ParquetFile(BufferReader(data)).read().to_pylist()
    except ArrowException as error:
        raise TrainingError(f"{path}: not Parquet: {error}") from None
    for number, row in enumerate(rows, 1):
        yield f"{path}: row {number}", row


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path}: not UTF-8: {error}") from None


def _numbers(rows: Sequence[Mapping[str, Any]], mapping: Columns) -> dict[str, str]:
    """Every column that only holds what could be labels stands for a tier of its name."""
    taken = {mapping.of(name) for name in OURS} | set(mapping.others.values())
    found = {
        name: name
        for name in rows[0]
        if name not in taken and all(_could_be_label(row.get(name)) for row in rows)
    }
    nested = rows[0].get(_NESTED)
    if isinstance(nested, dict):
        found |= {name: f"{_NESTED}.{name}" for name in nested}
    return found


def _could_be_label(value: Any) -> bool:
    return value in _UNKNOWN or _is_label(value)


def _line(place: str, row: Mapping[str, Any], mapping: Columns, tiers: Mapping[str, str]) -> Line:
    messages = _messages(place, mapping.of("prompt"), row)
    tags = {
        name.removeprefix(TAG): str(_value(place, column, row))
        for name, column in mapping.others.items()
        if name.startswith(TAG)
    }
    texts = {name: _optional(place, name, row, mapping) for name in ("group", "kind", "split")}
    return Line(
        request=ChatRequest(id=place, messages=messages, tags=tags),
        labels={tier: _label(place, column, row) for tier, column in tiers.items()},
        group=texts.pop("group") or json.dumps(messages, sort_keys=True),
        **texts,
    )


def _optional(place: str, name: str, row: Mapping[str, Any], mapping: Columns) -> str:
    if name not in mapping.others and name not in row:
        return ""
    value = _value(place, mapping.of(name), row)
    return "" if value is None else str(value)


def _messages(place: str, column: str, row: Mapping[str, Any]) -> Sequence[Json]:
    value = _value(place, column, row)
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return value
    raise TrainingError(f"{place}: {column}: must be a text or a list of messages, not {value!r}")


def _label(place: str, column: str, row: Mapping[str, Any]) -> float:
    value = _value(place, column, row)
    if value in _UNKNOWN:
        return float(np.nan)
    if not _is_label(value):
        raise TrainingError(f"{place}: {column}: must be a number from 0 to 1, not {value!r}")
    return float(_LABELS.get(str(value).lower(), value))


_LABELS: Mapping[str, float] = {"true": 1.0, "false": 0.0}


def _is_label(value: Any) -> bool:
    if str(value).lower() in _LABELS:
        return True
    try:
        return 0.0 <= float(value) <= 1.0
    except (TypeError, ValueError):
        return False


def _value(place: str, column: str, row: Mapping[str, Any]) -> Any:
    """The value of a column; of one within an object by its dotted path."""
    if column in row:
        return row[column]
    outer, is_path, inner = column.partition(".")
    nested = row.get(outer)
    if is_path and isinstance(nested, Mapping) and inner in nested:
        return nested[inner]
    raise TrainingError(f"{place}: there is no column {column!r}; there are: {', '.join(row)}")
