"""Finds requests in the audit log, and what was said of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, select, tuple_

from cascade.audit import AuditRecord
from cascade.errors import RequestError
from serving.store.feedback import Feedback
from serving.store.rows import record
from serving.store.tables import attempts, feedback, requests

_CANDIDATES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Only requests with these values; None is any.

    Attributes:
        id_prefix: what their ids begin with.
    """

    status: str | None = None
    requested_model: str | None = None
    policy: str | None = None
    experiment: str | None = None
    arm: str | None = None
    tier: str | None = None
    tenant: str | None = None
    session: str | None = None
    id_prefix: str | None = None


Position = tuple[float, str]
"""Where a request is in the log: when it began, in seconds since the epoch, and its id."""


def tail(
    engine: Engine,
    limit: int,
    *,
    after: float | None = None,
    before: Position | None = None,
    filters: Filters | None = None,
) -> list[AuditRecord]:
    """The last requests, the latest at the end.

    Args:
        engine: from `engine_for`.
        limit: how many at most.
        after: only requests that began after this time, in seconds since the epoch. A request is
            stored when it ends, so who follows the log asks again for some time back and leaves
            out the ids already seen.
        before: only requests that come before this one, for the page before a page.
        filters: only requests that match.
    """
    wanted = select(requests).order_by(requests.c.created_at.desc(), requests.c.id.desc())
    wanted = wanted.where(*_matching(filters or Filters())).limit(limit)
    if after is not None:
        wanted = wanted.where(requests.c.created_at > after)
    if before is not None:
        wanted = wanted.where(tuple_(requests.c.created_at, requests.c.id) < tuple_(*before))
    with engine.connect() as connection:
        rows = connection.execute(wanted).mappings().all()
        calls = _calls(connection, [row["id"] for row in rows])
    return [record(row, calls[row["id"]]) for row in reversed(rows)]


def show(engine: Engine, prefix: str) -> AuditRecord:
    """One request with its attempts.

    Args:
        engine: from `engine_for`.
        prefix: its id, or the beginning of it that no other id shares.

    Raises:
        RequestError: no request has that id, or several do; names some of them.
    """
    some = select(requests).where(*_begins(prefix)).order_by(requests.c.id)
    some = some.limit(_CANDIDATES + 1)
    with engine.connect() as connection:
        rows = connection.execute(some).mappings().all()
        if not prefix or not rows:
            raise RequestError(f"no request in the audit log begins with {prefix!r}", param="id")
        row = rows[0]  # the exact id sorts before all that only begin with it
        if len(rows) > 1 and row["id"] != prefix:
            ids = ", ".join(each["id"] for each in rows[:_CANDIDATES])
            raise RequestError(
                f"several requests begin with {prefix!r}: {ids}; give more of the id", param="id"
            )
        calls = _calls(connection, [row["id"]])
    return record(row, calls[row["id"]])


def feedback_on(engine: Engine, records: Sequence[AuditRecord]) -> dict[str, list[Feedback]]:
    """By request, what its tenant said of it, the latest at the end; nothing for most."""
    ids = [each.id for each in records]
    same = (requests.c.id == feedback.c.request_id) & (requests.c.tenant == feedback.c.tenant)
    wanted = select(feedback).join(requests, same).where(feedback.c.request_id.in_(ids))
    found: dict[str, list[Feedback]] = defaultdict(list)
    ordered = wanted.order_by(feedback.c.given_at, feedback.c.source)
    with engine.connect() as connection:
        for row in connection.execute(ordered).mappings():
            found[row["request_id"]].append(Feedback(**row))
    return found


def _matching(filters: Filters) -> list[ColumnElement[bool]]:
    values = {name: value for name, value in asdict(filters).items() if value is not None}
    begins = _begins(values.pop("id_prefix", ""))
    return [*begins, *(requests.c[name] == value for name, value in values.items())]


def _begins(prefix: str) -> list[ColumnElement[bool]]:
    key = requests.c.id
    return [key >= prefix, key < prefix + "\U0010ffff"] if prefix else []


def _calls(connection: Connection, ids: Sequence[str]) -> dict[str, list[RowMapping]]:
    wanted = select(attempts).where(attempts.c.request_id.in_(ids))
    found: dict[str, list[RowMapping]] = defaultdict(list)
    ordered = wanted.order_by(attempts.c.request_id, attempts.c.index)
    for row in connection.execute(ordered).mappings():
        found[row["request_id"]].append(row)
    return found
