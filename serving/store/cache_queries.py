"""Reads calls with their prompts' hashes from the audit log, in the order in which they began.

The log is paged through, so that a long one is never held as a whole and no transaction stays open
while somebody thinks about a page.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Select, and_, or_, select

from cascade.types import Kind
from serving.doctor.calls import Call, Paid, Prompt, prompt_of, seconds_of
from serving.store.queries import show
from serving.store.rows import Row
from serving.store.tables import attempts, requests

PAGE = 200

_REQUEST = [requests.c[name] for name in ("id", "created_at", "tenant", "session", "segments")]
_ATTEMPT = [
    attempts.c[name]
    for name in (
        *("request_id", "index", "tier", "replica", "finish_reason"),
        *("started_ms", "duration_ms", "first_token_ms"),
        *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_by_ttl"),
        *("cost_pico", "input_cost_pico", "cache_read_cost_pico", "cache_write_cost_pico"),
        *("output_cost_pico", "cold_premium_pico"),
    )
]
_OF_PROMPTS = (Kind.ANSWER.value, Kind.SAMPLE.value, Kind.SHADOW.value, Kind.PREWARM.value)
"""Attempts that send the request's own prompt; a judge or an estimator writes another."""


def calls(
    engine: Engine,
    *,
    since: float | None = None,
    tenant: str | None = None,
    session: str | None = None,
    page: int = PAGE,
) -> Iterator[Call]:
    """Calls of requests that began at `since` or later, the earliest first.

    Args:
        engine: from `engine_for`.
        since: in seconds since the epoch; None is from the beginning.
        tenant: only this tenant's.
        session: only this session's.
        page: how many requests are read at a time.
    """
    wanted = select(*_REQUEST).order_by(requests.c.created_at, requests.c.id).limit(page)
    if since is not None:
        wanted = wanted.where(requests.c.created_at >= since)
    if tenant is not None:
        wanted = wanted.where(requests.c.tenant == tenant)
    if session is not None:
        wanted = wanted.where(requests.c.session == session)
    following = wanted
    while True:
        with engine.connect() as connection:
            rows = _rows(connection, following)
            made = _attempts(connection, [row["id"] for row in rows])
        for row in rows:
            prompt = prompt_of(row["segments"])
            for attempt in made[row["id"]]:
                yield as_call(row, attempt, prompt)
        if len(rows) < page:
            return
        at, key = requests.c.created_at, requests.c.id
        last = rows[-1]
        later = or_(at > last["created_at"], and_(at == last["created_at"], key > last["id"]))
        following = wanted.where(at >= last["created_at"], later)


def prompt_by_id(engine: Engine, prefix: str) -> tuple[str, Prompt | None]:
    """A request's id and prompt.

    Raises:
        RequestError: no request has that id, or several begin with it.
    """
    record = show(engine, prefix)
    return record.id, prompt_of(record.segments)


def _rows(connection: Connection, wanted: Select[Any]) -> list[dict[str, Any]]:
    """As dictionaries, which are read faster than the database library's own mappings."""
    found = connection.execute(wanted)
    names = tuple(found.keys())
    return [dict(zip(names, row, strict=True)) for row in found.all()]


def _attempts(connection: Connection, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    wanted = select(*_ATTEMPT).where(
        attempts.c.request_id.in_(ids),
        attempts.c.kind.in_(_OF_PROMPTS),
        or_(attempts.c.kind != Kind.SHADOW.value, attempts.c.judge.is_(None)),  # a verdict is none
        or_(attempts.c.error_type.is_(None), attempts.c.input_tokens.is_not(None)),
    )
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    ordered = wanted.order_by(attempts.c.request_id, attempts.c.index)
    for row in _rows(connection, ordered):
        found[row["request_id"]].append(row)
    return found


def as_call(request: Row, attempt: Row, prompt: Prompt | None) -> Call:
    """A call from its request's row and its own; the prompt is that of the request."""
    began = request["created_at"] + attempt["started_ms"] / 1e3
    first = attempt["first_token_ms"]
    fresh, written = attempt["input_tokens"], attempt["cache_write_tokens"]
    return Call(
        request_id=request["id"],
        tenant=request["tenant"],
        session=request["session"],
        tier=attempt["tier"],
        replica=attempt["replica"],
        began=began,
        first_token=None if first is None else began + first / 1e3,
        ended=began + attempt["duration_ms"] / 1e3,
        prompt=prompt,
        cold_tokens=None if fresh is None else fresh + (written or 0),
        read_tokens=attempt["cache_read_tokens"],
        kept_seconds=_kept(attempt["cache_write_by_ttl"]),
        asks_tools=attempt["finish_reason"] == "tool_calls",
        paid=Paid(
            total=attempt["cost_pico"],
            prompt=_sum(attempt["input_cost_pico"], attempt["cache_write_cost_pico"]),
            read=attempt["cache_read_cost_pico"],
            output=attempt["output_cost_pico"],
            premium=attempt["cold_premium_pico"],
        ),
    )


def _kept(written: dict[str, Any] | None) -> float | None:
    if not written:
        return None
    times = [seconds_of(ttl) for ttl, tokens in written.items() if tokens]
    return max((each for each in times if each is not None), default=None)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
