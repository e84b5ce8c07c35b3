"""Tables of any origin as columns: JSON Lines, CSV (also .gz) or Parquet, each fault by its row."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evals.tables.columns import TableError

Row = Mapping[str, Any]
Column = Sequence[Any] | NDArray[np.float64]

ABSENT: Final = object()
"""Stands where a row has no such field, which is not the same as a field without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A table as it was read.

    Attributes:
        columns: by name, in the order of their first appearance; of the same length. Doubles of a
            Parquet file are an array, NaN where one is null.
        lines: the line of each row; empty where rows have none, as in Parquet.
        notes: what the file says about itself.
    """

    path: Path
    columns: Mapping[str, Column]
    lines: Sequence[int] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, at: int) -> str:
        """Where a row is, for messages."""
        return f"{self.path}:{self.lines[at]}" if self.lines else f"{self.path}: row {at + 1}"

    def has(self, column: str) -> bool:
        """Whether there is such a column, or one of objects that hold it."""
        return column in self.columns or self._outer(column) is not None

    def values(self, column: str) -> Column:
        """The column; of one within objects by its dotted path.

        Raises:
            TableError: a row lacks it.
        """
        found: Column = self.columns.get(column, ())
        if column not in self.columns:
            outer = self._outer(column)
            if outer is None:
                raise TableError(self._missing(0, column))
            inner = column.removeprefix(f"{outer}.")
            found = [
                value.get(inner, ABSENT) if isinstance(value, Mapping) else ABSENT
                for value in self.columns[outer]
            ]
        for at, value in enumerate(() if isinstance(found, np.ndarray) else found):
            if value is ABSENT:
                raise TableError(self._missing(at, column))
        return found

    def _outer(self, column: str) -> str | None:
        outer, is_path, _ = column.partition(".")
        there = is_path and any(isinstance(one, Mapping) for one in self.columns.get(outer, ()))
        return outer if there else None

    def _missing(self, at: int, column: str) -> str:
        there = [name for name, values in self.columns.items() if values[at] is not ABSENT]
        return f"{self.place(at)}: there is no column {column!r}; there are: {', '.join(there)}"


def read(path: Path) -> Raw:
    """The table of a file.

    Raises:
        TableError: it cannot be read, or holds no rows.
    """
    readers = {".parquet": _parquet, ".csv": _csv, ".jsonl": _jsonl}
    names = [suffix for suffix in path.suffixes if suffix != ".gz"]
    reader = readers.get(names[-1] if names else "")
    if reader is None:
        raise TableError(f"{path}: a table ends in .jsonl, .csv (also .gz) or .parquet")
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{path}: cannot be read: {error}") from None
    raw = reader(path, data)
    if not len(raw):
        raise TableError(f"{path}: holds no rows")
    return raw


def objects(values: Column) -> Sequence[Any]:
    """A column's values one by one, None where an array has none."""
    if isinstance(values, np.ndarray):
        return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124
    return values


def pyarrow_missing(path: Path) -> TableError:
    """Says how to install what reads and writes Parquet."""
    return TableError(
        f"{path}: Parquet needs the package pyarrow: pip install 'cascade-router[evals]'"
    )


def _jsonl(path: Path, data: bytes) -> Raw:
    return turned(path, _json_rows(path, _text(path, data)))


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TableError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise TableError(f"{path}:{number}: a line must be a JSON object")
        yield number, row


def _csv(path: Path, data: bytes) -> Raw:
    text = _text(path, data)
    before = csv.field_size_limit(max(len(text), csv.field_size_limit()))  # prompts may be long
    try:
        return turned(path, _csv_rows(path, text))
    finally:
        csv.field_size_limit(before)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, Row]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _refuse_repeated(f"{path}:1", reader.fieldnames or ())
        for row in reader:
            if None in row or None in row.values():
                raise TableError(
                    f"{path}:{reader.line_num}: has not as many fields as the first line"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise TableError(f"{path}:{reader.line_num}: not CSV: {error}") from None


def turned(path: Path, rows: Iterable[tuple[int, Row]]) -> Raw:
    """Rows as columns."""
    found = list(rows)
    names = list(dict.fromkeys(name for _, row in found for name in row))
    return Raw(
        path=path,
        columns={name: [row.get(name, ABSENT) for _, row in found] for name in names},
        lines=[number for number, _ in found],
    )


def _parquet(path: Path, data: bytes) -> Raw:
    try:
        from pyarrow import ArrowException, BufferReader  # noqa: PLC0415 - only this needs it
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415
    except ModuleNotFoundError:
        raise pyarrow_missing(path) from None
    try:
        table = ParquetFile(BufferReader(data)).read()
        _refuse_repeated(str(path), table.column_names)
        columns = {name: _column(table[name]) for name in table.column_names}
    except ArrowException as error:
        raise TableError(f"{path}: not Parquet: {error}") from None
    notes = {
        key.decode(): value.decode("utf-8", "replace")
        for key, value in (table.schema.metadata or {}).items()
    }
    return Raw(path=path, columns=columns, notes=notes)


def _refuse_repeated(place: str, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise TableError(f"{place}: there are two columns {name!r}")


def _column(found: Any) -> Column:
    """Doubles as an array, which takes a hundredth of the time, unless some are not numbers."""
    from pyarrow import compute, types  # noqa: PLC0415

    if not types.is_float64(found.type) or compute.any(compute.is_nan(found)).as_py():
        values: Sequence[Any] = found.to_pylist()
        return values
    array: NDArray[np.float64] = found.to_numpy()
    return array


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not UTF-8: {error}") from None
