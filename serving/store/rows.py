"""An audit record on its way: one line of JSON in the spool, then rows in the tables, and back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import JSON, Connection, Insert, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite

from cascade.audit import AttemptRecord, AuditRecord
from serving.store.tables import attempts, requests

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One request's rows, and the line of the spool they were read from."""

    line: bytes
    request: Row
    attempts: Sequence[Row]


def encode(record: AuditRecord) -> bytes:
    """The record as one line of JSON, without the line's end.

    Raises:
        TypeError: it holds something that is no JSON.
    """
    try:
        line = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return orjson.dumps(_storable(asdict(record)))
    # A NUL is allowed in JSON, and clients may send one; PostgreSQL takes it in no text.
    return orjson.dumps(_storable(asdict(record))) if b"\\u0000" in line else line


def decode(line: bytes) -> Entry:
    """Read a line back into rows.

    Columns that the line does not know (an older version wrote it) are left empty, and what is no
    column is left out.

    Raises:
        ValueError: it is not an audit record; says which value is at fault.
    """
    value = orjson.loads(line)
    if not isinstance(value, dict) or not isinstance(value.get("attempts"), list):
        raise ValueError("not an audit record")  # noqa: TRY004 - one kind of error for a bad line
    calls = [_row(attempts, attempt) for attempt in value["attempts"]]
    return Entry(line=line, request=_row(requests, value), attempts=calls)


def insert(connection: Connection, entries: Sequence[Entry]) -> None:
    """Insert requests with their attempts; what is there already stays as it is."""
    if not entries:
        return
    connection.execute(_insert(connection, requests), [entry.request for entry in entries])
    calls = [attempt for entry in entries for attempt in entry.attempts]
    if calls:
        connection.execute(_insert(connection, attempts), calls)


def record(request: RowMapping, calls: Sequence[RowMapping] = ()) -> AuditRecord:
    """The record that a request's rows were made from."""
    return AuditRecord(**request, attempts=[AttemptRecord(**call) for call in calls])


def _insert(connection: Connection, table: Table) -> Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def _row(table: Table, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a row of {table.name} is no object")  # noqa: TRY004
    row = {}
    for name, fits in _CHECKS[table.name].items():
        row[name] = value.get(name)
        if row[name] is not None and not fits(row[name]):
            raise ValueError(f"{table.name}.{name} holds a {type(row[name]).__name__}")
    return row


def _storable(value: Any) -> Any:
    """The same with nothing in it that a database or JSON refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(str(name)): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value


def _fits(kind: type) -> Callable[[object], bool]:
    if kind is float:
        return lambda value: type(value) in {int, float}
    return lambda value: type(value) is kind


# PostgreSQL tells a wrong type from a missing table only in the small print, and SQLite takes
# nearly anything, so types are looked at here: what the database then refuses is the value.
_CHECKS = {
    table.name: {
        column.name: (
            (lambda value: isinstance(value, dict | list))
            if isinstance(column.type, JSON)
            else _fits(column.type.python_type)
        )
        for column in table.columns
    }
    for table in (requests, attempts)
}
