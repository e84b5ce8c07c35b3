"""A record on its way: one line of JSON in the spool, then rows in the tables, and back.

A line is an audit record, `{"feedback": ...}`, or `{"late": [attempt, ...], "at": seconds}` with
calls that belong to a request which was recorded before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

import orjson
from sqlalchemy import JSON, Column, Connection, Insert, RowMapping, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from cascade.audit import AttemptRecord, AuditRecord, late
from serving.store.adding import Said, add_late, add_new, take_turn
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.putting import put_new
from serving.store.tables import attempts, feedback, requests

Row = Mapping[str, Any]

_ABSENT = {"usage_estimated": False}
"""What a column holds that must hold something, when the line is older than the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The rows of one line of the spool, by table; and the line.

    Attributes:
        late_since: when the calls were over, in seconds since the epoch, of a line with nothing but
            calls that join a request's own; None of any other.
    """

    line: bytes
    requests: Sequence[Row] = ()
    attempts: Sequence[Row] = ()
    feedback: Sequence[Row] = ()
    late_since: float | None = None

    @property
    def request_ids(self) -> set[str]:
        """The requests that its calls were made for."""
        return {row["request_id"] for row in self.attempts}


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """Requests that were not there before, and the calls that came with them."""

    requests: Sequence[Row]
    calls: Sequence[Row]


def encode(record: AuditRecord | Feedback | Late) -> bytes:
    """The record as one line of JSON, without the line's end.

    Raises:
        TypeError: it holds something that is no JSON.
    """
    value = _line(record)
    try:
        line = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return _encode_storable(value)
    # A NUL is allowed in JSON, and clients may send one; PostgreSQL takes it in no text.
    return _encode_storable(value) if b"\\u0000" in line else line


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
    if isinstance(value, dict) and isinstance(value.get("late"), list):
        joining = [_row(attempts, attempt) for attempt in value["late"]]
        return Entry(line=line, attempts=joining, late_since=float(value.get("at") or 0.0))
    if not isinstance(value, dict) or not isinstance(value.get("attempts"), list):
        raise ValueError("not an audit record")  # noqa: TRY004 - one kind of error for a bad line
    calls = [_row(attempts, attempt) for attempt in value["attempts"]]
    return Entry(line=line, requests=[_row(requests, value)], attempts=calls)


def insert(connection: Connection, entries: Sequence[Entry]) -> New:
    """Insert requests with their attempts, calls that came late, and feedback; and add them up.

    What is there of a request stays as it is; of feedback, what was said last.

    Returns:
        What was not there before.
    """
    take_turn(connection)
    new = _new_requests(connection, entries)
    asked = [row for entry in new.values() for row in entry.requests]
    made = [row for entry in new.values() for row in entry.attempts]
    late = _new_calls(connection, entries)
    heard = [row for entry in entries for row in entry.feedback]
    _put(connection, requests, asked)
    _put(connection, attempts, [*made, *late])
    if asked:
        add_new(connection, asked, made)
    if late:
        add_late(connection, late)
    if heard:
        said = Said(connection, {row["request_id"] for row in heard})
        _put(connection, feedback, heard)
        said.add_change()
    return New(requests=asked, calls=made)


def known(connection: Connection, entries: Sequence[Entry]) -> set[str]:
    """Of the requests that calls were made for, those that are in the table."""
    ids = set[str]().union(*(entry.request_ids for entry in entries))
    return set(connection.scalars(select(requests.c.id).where(requests.c.id.in_(ids))))


def record(request: RowMapping, calls: Sequence[RowMapping] = ()) -> AuditRecord:
    """The record that a request's rows were made from."""
    return AuditRecord(**request, attempts=[AttemptRecord(**call) for call in calls])


def _new_requests(connection: Connection, entries: Sequence[Entry]) -> dict[str, Entry]:
    """By id, the requests that are not in the table; of one given twice, the first."""
    given: dict[str, Entry] = {}
    for entry in entries:
        for row in entry.requests:
            given.setdefault(row["id"], entry)
    there = select(requests.c.id).where(requests.c.id.in_(given))
    for known_id in connection.scalars(there) if given else ():
        del given[known_id]
    return given


def _new_calls(connection: Connection, entries: Sequence[Entry]) -> list[Row]:
    """Calls that came late and are not in the table."""
    late = [row for entry in entries if entry.late_since is not None for row in entry.attempts]
    given = {(row["request_id"], row["index"]): row for row in late}
    if given:
        ids = {request_id for request_id, _ in given}
        key = (attempts.c.request_id, attempts.c.index)
        for there in connection.execute(select(*key).where(key[0].in_(ids))):
            given.pop((there[0], there[1]), None)
    return list(given.values())


def _put(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    if not rows:
        return
    if connection.dialect.name == "sqlite" and table is not feedback:
        put_new(connection, table, rows)
    else:
        connection.execute(_insert(connection, table), rows)


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


def _line(record: AuditRecord | Feedback | Late) -> Any:
    if isinstance(record, Feedback):
        return {"feedback": record}
    if isinstance(record, Late):
        return {"late": late(record.request_id, record.attempts), "at": record.at}
    return record


def _encode_storable(value: Any) -> bytes:
    return orjson.dumps(_storable(value))


def _row(table: Table, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"a row of {table.name} is no object")  # noqa: TRY004
    row, given = {}, value.get
    for name, kinds in _KINDS[table.name]:
        row[name] = held = given(name)
        if held is None:
            row[name] = _ABSENT.get(name)
        elif type(held) not in kinds:
            raise ValueError(f"{table.name}.{name} holds a {type(held).__name__}")
    return row


def _storable(value: Any) -> Any:
    """The same with nothing in it that a database or JSON refuses."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(str(name)): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return (
        _storable(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else value
    )


def _kinds(column: Column[Any]) -> tuple[type, ...]:
    if isinstance(column.type, JSON):
        return dict, list
    kind = column.type.python_type
    return (int, float) if kind is float else (kind,)


# PostgreSQL tells a wrong type from a missing table only in the small print, and SQLite takes
# nearly anything, so types are looked at here: what the database then refuses is the value.
_KINDS = {
    # Plain texts, which the columns' own names are not.
    table.name: [(str(column.name), _kinds(column)) for column in table.columns]
    for table in (requests, attempts, feedback)
}
