"""How long the questions to an audit log of a million requests take, on either database.

    python -m benchmarks.audit_queries [--requests N] [--database NAME] [--page docs/audit.md]

The log is a month of made-up traffic: twenty tenants, an experiment of two arms, three tiers, one
request in three escalated, one in twenty with feedback. It is loaded in bulk and then added up as a
log of an older version is, so that this is timed as well. Each question is asked seven times, the
first time with nothing in the process's memory; the median and the slowest are told.
"""

import argparse
import contextlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from sqlalchemy import JSON, Engine, Table, text

from benchmarks.pages import put
from serving.dashboard.disagreements import disagreements
from serving.doctor.calls import Call
from serving.results import Trial
from serving.results.kept import compute, keep, kept
from serving.results.period import current
from serving.store import cache_queries, overview, queries
from serving.store.adding import catch_up
from serving.store.database import engine_for
from serving.store.stats import stats
from serving.store.tables import attempts, feedback, requests, uncounted
from tests.databases import postgres_server, sqlite_copy, sqlite_template

DAYS, DAY = 30, 86_400
ASKED = 7
LIMIT_MS = 300.0
BEGIN, END = "<!-- queries begin -->", "<!-- queries end -->"
TRIAL = Trial(name="auto", control="control", weights={"control": 1.0, "cascade": 1.0})
COMPUTED = "the same, computed anew"
"""For no page and no command: that is done beside them."""

_CHUNK = 10_000
_TIERS = ("small", "medium", "large")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Milliseconds of one question."""

    question: str
    median: float
    slowest: float


def main() -> None:
    """Fill, ask, print, and write the table into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--database", choices=["SQLite", "PostgreSQL"], action="append")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    console = Console(width=110)
    measured: dict[str, list[Timed]] = {}
    for name, url in databases(given.database or ["SQLite", "PostgreSQL"]):
        engine = engine_for(url)
        rate = fill(engine, given.requests, console)
        console.print(f"{name}: {given.requests:,} requests, {rate:,.0f} a second are caught up")
        measured[name] = [ask(question, work) for question, work in questions(engine)]
        engine.dispose()
        for each in measured[name]:
            late = " LATE" if each.slowest > LIMIT_MS and each.question != COMPUTED else ""
            console.print(f"  {each.question}: {each.median:.0f} ms, {each.slowest:.0f}{late}")
    if given.page:
        put(given.page, BEGIN, END, table(measured))


def databases(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Fresh ones, one after the other."""
    if "SQLite" in names:
        with tempfile.TemporaryDirectory() as folder, sqlite_template() as template:
            yield "SQLite", sqlite_copy(template, Path(folder)).url
    if "PostgreSQL" in names:
        with postgres_server() as server, server.database(migrated=True) as database:
            yield "PostgreSQL", database.url


def questions(engine: Engine) -> Iterator[tuple[str, Callable[[], object]]]:
    """What pages and commands ask."""
    now = time.time()
    one = queries.tail(engine, 1)[0]
    middle = (now - 15 * DAY, "")
    filters = {
        "tail": queries.Filters(),
        "tail of one status": queries.Filters(status="error"),
        "tail of one policy": queries.Filters(policy="always-large"),
        "tail of one arm": queries.Filters(arm="cascade"),
        "tail of one tier": queries.Filters(tier="medium"),
        "tail of one tenant": queries.Filters(tenant="tenant-07"),
        "tail of one session": queries.Filters(session=one.session),
        "tail of an arm that is not there": queries.Filters(arm="nobody"),
        "tail of one tenant's errors": queries.Filters(tenant="tenant-07", status="error"),
        "tail by the beginning of an id": queries.Filters(id_prefix=one.id[:9]),
    }
    for name, only in filters.items():
        yield f"{name}, 50 requests", lambda only=only: queries.tail(engine, 50, filters=only)
    yield "a page in the middle", lambda: queries.tail(engine, 50, before=middle)
    yield "show", lambda: (queries.show(engine, one.id), queries.feedback_on(engine, [one]))
    yield "stats, all", lambda: stats(engine)
    for days in (1, 7):
        since = now - days * DAY - 1234
        yield f"stats, {days} d", lambda since=since: stats(engine, since)
    for name, since in (("24 h", now - DAY), ("7 d", now - 7 * DAY), ("all", None)):
        yield f"overview, {name}", lambda since=since: overview.overview(engine, since)
    tenant = overview.Only(tenant="tenant-07")
    yield "overview of a tenant, all", lambda: overview.overview(engine, only=tenant)
    yield "overview, 24 h, the first of a process", lambda: first_overview(engine, now - DAY)
    yield "judges, all", lambda: overview.judges(engine)
    month = now - DAYS * DAY
    yield "judges, where people disagree", lambda: disagreements(engine, month, None, 12)
    yield "calls of a session", lambda: session_calls(engine, one.session)
    keep(engine, compute(engine, current(engine, TRIAL, now)))
    yield "results of an experiment, kept", lambda: kept(engine, current(engine, TRIAL, now))
    yield COMPUTED, lambda: compute(engine, current(engine, TRIAL, now))


def first_overview(engine: Engine, since: float) -> None:
    """With connections and statements that are as new as after a start."""
    new = engine_for(engine.url.render_as_string(hide_password=False))
    overview.overview(new, since)
    new.dispose()


def session_calls(engine: Engine, session: str) -> list[Call]:
    """What `cascade cache doctor --session` reads."""
    return list(cache_queries.calls(engine, session=session))


def ask(question: str, work: Callable[[], object]) -> Timed:
    """Ask several times."""
    took = []
    for _ in range(ASKED):
        before = time.perf_counter()
        work()
        took.append((time.perf_counter() - before) * 1e3)
    return Timed(question=question, median=statistics.median(took), slowest=max(took))


def table(measured: dict[str, list[Timed]]) -> str:
    """The measurements as Markdown."""
    lines = [
        f"| question | {' | '.join(measured)} |",
        f"|---|{'---:|' * len(measured)}",
    ]
    for rows in zip(*measured.values(), strict=True):
        cells = [f"{each.median:.0f} / {each.slowest:.0f}" for each in rows]
        lines.append(f"| {rows[0].question} | {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(engine: Engine, number: int, console: Console) -> float:
    """Load so many requests and add them up; requests a second of the latter."""
    draw = random.Random(7)  # noqa: S311 - traffic, not a secret
    now = time.time()
    before = time.perf_counter()
    for first in range(0, number, _CHUNK):
        made = [row(draw, n, number, now) for n in range(first, min(first + _CHUNK, number))]
        with load(engine) as store:
            store(requests, [each.request for each in made])
            store(attempts, [call for each in made for call in each.calls])
            store(feedback, [said for each in made for said in each.said])
            store(uncounted, [{"request_id": each.request["id"]} for each in made])
    console.print(f"loaded in {time.perf_counter() - before:.0f} s")
    before = time.perf_counter()
    while catch_up(engine):
        pass
    took = time.perf_counter() - before
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))
    return number / took


@contextlib.contextmanager
def load(engine: Engine) -> Iterator[Callable[[Table, Sequence[dict[str, Any]]], None]]:
    """A callable that loads rows by the database's quickest way."""
    connection = engine.raw_connection()
    cursor: Any = connection.cursor()
    try:
        if engine.name == "sqlite":
            cursor.execute("BEGIN IMMEDIATE")
        yield lambda table, rows: _load(cursor, table, rows, copies=engine.name != "sqlite")
        cursor.execute("COMMIT") if engine.name == "sqlite" else connection.commit()
    finally:
        connection.close()


def _load(cursor: Any, table: Table, rows: Sequence[dict[str, Any]], *, copies: bool) -> None:
    names = [column.name for column in table.columns]
    documents = {column.name for column in table.columns if isinstance(column.type, JSON)}
    values = (
        tuple(
            orjson.dumps(row[name]).decode()
            if name in documents and row.get(name) is not None
            else row.get(name)
            for name in names
        )
        for row in rows
    )
    quoted = ", ".join(f'"{name}"' for name in names)
    if not copies:
        marks = ", ".join("?" * len(names))
        cursor.executemany(f"INSERT INTO {table.name} ({quoted}) VALUES ({marks})", values)  # noqa: S608 - names of our own
        return
    with cursor.copy(f"COPY {table.name} ({quoted}) FROM STDIN") as copy:
        for value in values:
            copy.write_row(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The rows of one request."""

    request: dict[str, Any]
    calls: list[dict[str, Any]]
    said: list[dict[str, Any]]


def row(draw: random.Random, n: int, number: int, now: float) -> Made:
    """The n-th of so many requests."""
    at = now - DAYS * DAY * (1 - n / number)
    request_id = f"{int(at * 1000):011x}{n:012x}"
    arm = "cascade" if draw.random() < 0.5 else "control"  # noqa: PLR2004 - a coin
    policy = "default" if arm == "cascade" else "always-large"
    escalated = arm == "cascade" and draw.random() < 0.6  # noqa: PLR2004 - three in ten of all
    tier = "large" if arm == "control" or escalated else draw.choice(_TIERS[:2])
    status = draw.choices(("ok", "degraded", "error", "cancelled"), (97, 1, 1, 1))[0]
    ms = draw.lognormvariate(6, 0.7)
    calls = _calls(draw, request_id, tier, escalated=escalated, ms=ms)
    cost = sum(call["cost_pico"] for call in calls)
    tenant = f"tenant-{draw.randrange(20):02d}"
    request = {
        "id": request_id,
        "created_at": at,
        "status": status,
        "requested_model": "auto",
        "experiment": "auto",
        "arm": arm,
        "policy": policy,
        "config_version": "c0ffee",
        "tenant": tenant,
        "session": f"{tenant}-{n // 8}",
        "unit": f"s{n // 8}",
        "tags": {},
        "prompt_hash": f"{n:032x}",
        "prompt_messages": 3,
        "tier": tier,
        "model": tier,
        "reason": "the judge is sure enough of it",
        "answers": 1 + escalated,
        "beliefs": {"small": 0.41, "large": 0.78},
        "belief_flags": [],
        "difficulty": 0.59,
        "cost_pico": cost,
        "baseline_pico": cost * 2,
        "duration_ms": ms,
        "overhead_ms": 2.0,
        "released_characters": 400,
        "key_id": "a1b2c3d4e5f6",
        "prompt_form": "hash",
    }
    said = _said(draw, request) if draw.random() < 0.05 else []  # noqa: PLR2004 - one in twenty
    return Made(request=request, calls=calls, said=said)


def _said(draw: random.Random, request: dict[str, Any]) -> list[dict[str, Any]]:
    content = draw.random() < 0.8  # noqa: PLR2004 - four in five are
    return [
        {
            "request_id": request["id"],
            "tenant": request["tenant"],
            "source": "",
            "given_at": request["created_at"] + 9,
            "score": float(content),
        }
    ]


def _calls(
    draw: random.Random, request_id: str, tier: str, *, escalated: bool, ms: float
) -> list[dict[str, Any]]:
    score = draw.random()
    answer = {
        "request_id": request_id,
        "kind": "answer",
        "partial": False,
        "reason": "the first",
        "input_tokens": 300,
        "cache_read_tokens": 900,
        "output_tokens": 120,
        "cost_pico": 2_000_000,
        "quoted_pico": 2_100_000,
        "cold_premium_pico": 100_000,
        "usage_estimated": False,
        "started_ms": 2.0,
        "duration_ms": ms,
        "first_token_ms": ms / 4,
        "replica": "127.0.0.1:8101",
        "model": tier,
    }
    judged = {"judge": "sound", "score": score, "verdict_reason": "", "threshold": 0.4}
    last = {**answer, "tier": tier, "outcome": "accepted"}
    if not escalated:
        return [{**last, **(judged if tier != "large" else {}), "index": 0}]
    small = {**answer, **judged, "tier": "small", "outcome": "rejected", "index": 0}
    judge = {
        "request_id": request_id,
        "index": 1,
        "kind": "judge",
        "tier": "small",
        "judge": "sound",
        "score": score,
        "verdict_reason": "",
        "partial": False,
        "reason": "judges attempt 0",
        "cost_pico": 0,
        "usage_estimated": False,
        "started_ms": 4.0,
        "duration_ms": 1.0,
    }
    return [small, judge, {**last, "index": 2}]


if __name__ == "__main__":
    main()
