"""Keeps the sums in step with the rows, in the transaction that writes the rows.

So there is no mark up to which was added, and nothing is added twice: a row that is there has been
added, also after a crash. Whoever writes takes turns, since what comes of a request and what is
said of it may come by two processes at once, and either has to see the other.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Select, delete, select, text
from sqlalchemy.dialects import postgresql, sqlite

from cascade.types import Kind
from serving.store.breathing import breathing
from serving.store.database import WRITES
from serving.store.sums import TABLES, Row, Sums, add_calls, add_request, add_said
from serving.store.tables import attempts, feedback, requests, uncounted

_TURN = 0x636F756E  # any number that no other program locks; this one spells "coun"
_MOST = 1000  # requests that are caught up with in one transaction

_OF_REQUEST = (
    *("id", "created_at", "tenant", "experiment", "arm", "policy", "tier", "status", "answers"),
    *("cost_pico", "baseline_pico", "duration_ms", "overhead_ms"),
)
_OF_CALL = (
    *("request_id", "index", "kind", "tier", "judge", "score", "outcome", "verdict_reason"),
    *("error_type", "input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"),
    *("reasoning_tokens", "cost_pico", "cold_premium_pico", "quoted_pico", "first_token_ms"),
)
_OF_FEEDBACK = ("request_id", "tenant", "score")


def take_turn(connection: Connection) -> None:
    """Wait until nobody else writes; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _TURN})


def add_new(connection: Connection, new: Sequence[Row], calls: Iterable[Row]) -> None:
    """Add requests that were written just now, with what was said of them before they came."""
    _write(connection, _counted(new, calls, _said(connection, [row["id"] for row in new])))


def add_late(connection: Connection, calls: Sequence[Row]) -> None:
    """Add calls that were written just now and join requests that are there."""
    sums, of = Sums(), _by_request(calls)
    for request in _counted_requests(connection, of):
        add_calls(sums, request, of[request["id"]])
    _write(connection, sums)


class Said:
    """What was said of requests that are there, before it is written, so that it can be compared.

    Args:
        connection: in the transaction that will write.
        ids: of the requests that something new was said of.
    """

    def __init__(self, connection: Connection, ids: Collection[str]) -> None:
        self._connection = connection
        self._requests = _counted_requests(connection, ids)
        self._before = _said(connection, ids)

    def add_change(self) -> None:
        """It is written: add what has changed by it."""
        ids = [request["id"] for request in self._requests]
        if not ids:
            return
        after, calls = _said(self._connection, ids), _by_request(_calls(self._connection, ids))
        sums = Sums()
        for request in self._requests:
            theirs = (_own(request, self._before), _own(request, after))
            add_said(sums, request, calls[request["id"]], *theirs)
        _write(self._connection, sums)


def catch_up(engine: Engine, most: int = _MOST) -> int:
    """Add some of the requests that are older than the sums; how many that were, 0 at the end."""
    with engine.execution_options(**WRITES).begin() as connection:
        take_turn(connection)
        ids = list(connection.scalars(select(uncounted.c.request_id).limit(most)))
        if not ids:
            return 0
        known = connection.execute(_of_requests(ids)).mappings().all()
        said = _said(connection, ids)
        _write(connection, _counted(known, _calls(connection, ids), said))
        connection.execute(delete(uncounted).where(uncounted.c.request_id.in_(ids)))
    return len(ids)


def raw_sums(connection: Connection, since: float, until: float) -> Sums:
    """The sums of the requests that began at `since` or later and before `until`, row by row."""
    within = (requests.c.created_at >= since, requests.c.created_at < until)
    there = select(uncounted.c.request_id)
    columns = [requests.c[name] for name in _OF_REQUEST]
    asked = select(*columns).where(*within, requests.c.id.not_in(there))
    known = connection.execute(asked).mappings().all()
    joined = attempts.join(requests, requests.c.id == attempts.c.request_id)
    made = select(*(attempts.c[name] for name in _OF_CALL)).select_from(joined).where(*within)
    calls = connection.execute(made.order_by(attempts.c.request_id, attempts.c.index)).mappings()
    of_feedback = feedback.join(requests, requests.c.id == feedback.c.request_id)
    heard = select(*(feedback.c[name] for name in _OF_FEEDBACK)).select_from(of_feedback)
    said = connection.execute(heard.where(*within)).mappings()
    return _counted(known, calls, _by_request(said))


def _counted(asked: Sequence[Row], calls: Iterable[Row], said: dict[str, list[Row]]) -> Sums:
    sums, of = Sums(), _by_request(calls)
    for request in breathing(asked):
        theirs = of[request["id"]]
        own = [call for call in theirs if call["kind"] != Kind.SHADOW]
        add_request(sums, request, own, _own(request, said))
        add_calls(sums, request, [call for call in theirs if call["kind"] == Kind.SHADOW])
    return sums


def _counted_requests(connection: Connection, ids: Collection[str]) -> Sequence[Row]:
    waiting = select(uncounted.c.request_id).where(uncounted.c.request_id.in_(ids))
    wanted = _of_requests(ids).where(requests.c.id.not_in(waiting))
    return connection.execute(wanted).mappings().all()


def _of_requests(ids: Collection[str]) -> Select[Any]:
    return select(*(requests.c[name] for name in _OF_REQUEST)).where(requests.c.id.in_(ids))


def _calls(connection: Connection, ids: Collection[str]) -> Iterable[Row]:
    wanted = select(*(attempts.c[name] for name in _OF_CALL)).where(attempts.c.request_id.in_(ids))
    ordered = wanted.order_by(attempts.c.request_id, attempts.c.index)
    return connection.execute(ordered).mappings()


def _said(connection: Connection, ids: Collection[str]) -> dict[str, list[Row]]:
    wanted = select(*(feedback.c[name] for name in _OF_FEEDBACK))
    rows = connection.execute(wanted.where(feedback.c.request_id.in_(ids))).mappings()
    return _by_request(rows)


def _own(request: Row, said: dict[str, list[Row]]) -> list[Row]:
    """What its own tenant said of a request."""
    return [each for each in said[request["id"]] if each["tenant"] == request["tenant"]]


def _by_request(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["request_id"]].append(row)
    return found


def _write(connection: Connection, sums: Sums) -> None:
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    for table in TABLES:
        rows = list(sums.rows(table))
        if not rows:
            continue
        statement = dialect.insert(table)
        new = statement.excluded
        adding = statement.on_conflict_do_update(
            index_elements=[column.name for column in table.primary_key],
            set_={c.name: c + new[c.name] for c in table.columns if not c.primary_key},
        )
        connection.execute(adding, rows)
