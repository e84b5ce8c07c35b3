"""A record on its way: one line of JSON in the spool, then rows in the tables, and back.

A line is an audit record, or `{"feedback": ...}`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import JSON, Connection, Insert, RowMapping, Table
from sqlalchemy.dialects import postgresql, sqlite

from cascade.audit import AttemptRecord, AuditRecord
from serving.store.feedback import Feedback
from serving.store.tables import attempts, feedback, requests

Row = Mapping[str, Any]

_ABSENT = {"usage_estimated": False}
"""What a column holds that must hold something, when the line is older than the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The rows of one line of the spool, by table; and the line."""

    line: bytes
    requests: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    feedback: Sequence[Row] = ()


def encode(record: AuditRecord | Feedback) -> bytes:
    """The record as one line of JSON, without the line's end.

    Raises:
        TypeError: it holds something that is no JSON.
    """
    value = {"feedback": record} if isinstance(record, Feedback) else record
    try:
        line = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return _encode_storable(record)
    # A NUL is allowed in JSON, and clients may send one; PostgreSQL takes it in no text.
    return _encode_storable(record) if b"\\u0000" in line else line


def decode(line: bytes) -> Entry:
    """Read a line back into rows.

    Columns that the line does not know (an older version wrote it) are left empty, and what is no
    column is left out.

    Raises:
        ValueError: it is no record; says which value is at fault.
    """
    value = orjson.loads(line)
    if isinstance(value, dict) and "feedback" in value:
        return Entry(line=line, feedback=[_row(feedback, value["feedback"])])
    if not isinstance(value, dict) or not isinstance(value.get("attempts"), list):
        raise ValueError("not an audit record")  # noqa: TRY004 - one kind of error for a bad line
    calls = [_row(attempts, attempt) for attempt in value["attempts"]]
    return Entry(line=line, requests=[_row(requests, value)], attempts=calls)


def insert(connection: Connection, entries: Sequence[Entry]) -> None:
    """Insert requests with their attempts, and feedback.

    What is there of a request stays as it is; of feedback, what was said last.
    """
    rows = {
        requests: [row for entry in entries for row in entry.requests],
        attempts: [row for entry in entries for row in entry.attempts],
        feedback: [row for entry in entries for row in entry.feedback],
    }
    for table, new in rows.items():
        if new:
            connection.execute(_insert(connection, table), new)


def record(request: RowMapping, calls: Sequence[RowMapping] = ()) -> AuditRecord:
    """The record that a request's rows were made from."""
    return AuditRecord(**request, attempts=[AttemptRecord(**call) for call in calls])


def _insert(connection: Connection, table: Table) -> Insert:
    # The two dialects' inserts are alike and share no type.
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(table)
    inserting: Insert = (
        _last_word(statement) if table is feedback else statement.on_conflict_do_nothing()
    )
    return inserting


def _last_word(statement: Any) -> Any:
    """Lines may come late and out of order, so the time decides and not the order."""
    said = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=[column.name for column in feedback.primary_key],
        set_={c.name: said[c.name] for c in feedback.columns if not c.primary_key},
        where=said.given_at > feedback.c.given_at,
    )


def _encode_storable(record: AuditRecord | Feedback) -> bytes:
    value = _storable(asdict(record))
    return orjson.dumps({"feedback": value} if isinstance(record, Feedback) else value)


def _row(table: Table, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a row of {table.name} is no object")  # noqa: TRY004
    row = {}
    for name, fits in _CHECKS[table.name].items():
        row[name] = value.get(name)
        if row[name] is None:
            row[name] = _ABSENT.get(name)
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
    for table in (requests, attempts, feedback)
}
