"""Writes the audit log to Parquet files, a page at a time, for whoever wants to look at all of it.

A file appears when it is whole. Texts that are kept encrypted stay so. Money is whole pico-dollars
as in the database, times that are moments are timestamps in UTC, and documents are JSON texts.
"""

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import JSON, Column, Connection, Engine, Table, func, select, tuple_

from cascade.errors import RequestError
from serving.store.ranges import Range
from serving.store.tables import attempts, feedback, requests

PAGE = 2000
TABLES = (requests, attempts, feedback)

_MOMENTS = {"created_at", "given_at"}
_MOMENT = pa.timestamp("us", tz="UTC")
_TYPES = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    requests: int
    files: Sequence[Path]


def count(engine: Engine, span: Range) -> int:
    """How many requests there are to export."""
    with engine.connect() as connection:
        wanted = select(func.count()).select_from(requests).where(*_within(span))
        return connection.scalar(wanted) or 0


def export(
    engine: Engine,
    out: Path,
    span: Range,
    *,
    page: int = PAGE,
    written: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write requests with their attempts and their tenant's feedback.

    Args:
        engine: from `engine_for`.
        out: a name that ends with .parquet becomes one file, attempts and feedback as lists in each
            row; any other becomes a folder with requests, attempts and feedback in a file each.
        span: of the requests' beginnings.
        page: requests that are held in memory at a time.
        written: told after each page how many requests it had.

    Raises:
        RequestError: a file is there already.
    """
    with contextlib.ExitStack() as stack:
        if out.suffix == ".parquet":
            sinks = [_Sink(out, _nested_schema(), stack)]
            rows: list[_Pick] = [_Page.nested]
        else:
            sinks = [_Sink(out / f"{t.name}.parquet", _schema(t), stack) for t in TABLES]
            rows = [
                lambda page: page.requests,
                lambda page: page.of(page.attempts),
                lambda page: page.of(page.feedback),
            ]
        number = 0
        for each in _pages(engine, span, page):
            for sink, pick in zip(sinks, rows, strict=True):
                sink.write(pick(each))
            number += len(each.requests)
            written(len(each.requests))
        return Exported(requests=number, files=[sink.finish() for sink in sinks])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Some requests, and by request what belongs to them."""

    requests: Sequence[dict[str, Any]]
    attempts: dict[str, list[dict[str, Any]]]
    feedback: dict[str, list[dict[str, Any]]]

    def of(self, rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return [row for request in self.requests for row in rows[request["id"]]]

    def nested(self) -> list[dict[str, Any]]:
        return [
            {
                **request,
                "attempts": self.attempts[request["id"]],
                "feedback": self.feedback[request["id"]],
            }
            for request in self.requests
        ]


_Pick = Callable[[_Page], Sequence[dict[str, Any]]]


class _Sink:
    """A Parquet file that has its own name once it is whole."""

    def __init__(self, path: Path, schema: Any, stack: contextlib.ExitStack) -> None:
        if path.exists():
            raise RequestError(f"{path} is there already; name another place", param="out")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._schema = path, schema
        self._partial = path.with_name(f".{path.name}.partial")
        stack.callback(self._partial.unlink, missing_ok=True)
        self._writer = stack.enter_context(
            pq.ParquetWriter(self._partial, schema, compression="zstd")
        )

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            self._writer.write_table(pa.Table.from_pylist(list(rows), schema=self._schema))

    def finish(self) -> Path:
        self._writer.close()
        self._partial.replace(self._path)
        return self._path


def _pages(engine: Engine, span: Range, size: int) -> Iterator[_Page]:
    key = (requests.c.created_at, requests.c.id)
    wanted = select(requests).where(*_within(span)).order_by(*key).limit(size)
    following = wanted
    while True:
        with engine.connect() as connection:
            rows = connection.execute(following).mappings().all()
            last = (rows[-1]["created_at"], rows[-1]["id"]) if rows else (0.0, "")
            yield _page(connection, rows)
        if len(rows) < size:
            return
        following = wanted.where(tuple_(*key) > tuple_(*last))


def _page(connection: Connection, rows: Sequence[Any]) -> _Page:
    tenants = {row["id"]: row["tenant"] for row in rows}
    calls = select(attempts).where(attempts.c.request_id.in_(tenants)).order_by(attempts.c.index)
    said = select(feedback).where(feedback.c.request_id.in_(tenants))
    made, heard = defaultdict(list), defaultdict(list)
    for row in connection.execute(calls).mappings():
        made[row["request_id"]].append(_plain(attempts, row))
    for row in connection.execute(said.order_by(feedback.c.given_at)).mappings():
        if tenants[row["request_id"]] == row["tenant"]:
            heard[row["request_id"]].append(_plain(feedback, row))
    return _Page(requests=[_plain(requests, row) for row in rows], attempts=made, feedback=heard)


def _within(span: Range) -> list[Any]:
    bounds = []
    if math.isfinite(span.since):
        bounds.append(requests.c.created_at >= span.since)
    if math.isfinite(span.until):
        bounds.append(requests.c.created_at < span.until)
    return bounds


def _plain(table: Table, row: Any) -> dict[str, Any]:
    return {column.name: _value(column, row[column.name]) for column in table.columns}


def _value(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if column.name in _MOMENTS:
        return round(value * 1e6)
    return orjson.dumps(value).decode() if isinstance(column.type, JSON) else value


def _schema(table: Table) -> Any:
    return pa.schema([(column.name, _type(column)) for column in table.columns])


def _nested_schema() -> Any:
    lists = [(t.name, pa.list_(pa.struct(list(_schema(t))))) for t in (attempts, feedback)]
    return pa.schema([*_schema(requests), *(pa.field(name, kind) for name, kind in lists)])


def _type(column: Column[Any]) -> Any:
    if column.name in _MOMENTS:
        return _MOMENT
    return pa.string() if isinstance(column.type, JSON) else _TYPES[column.type.python_type]
