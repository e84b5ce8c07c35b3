"""How fast the audit log takes requests, and what that costs the event loop.

    python -m benchmarks.audit_log [--requests N] [--rate R]

Each request has two attempts, so three rows. `write` is timed on an event loop that gets R requests
a second, beside the lateness of that loop's timer with and without a sink at work. Rows a second
are of a backlog of N requests that waits in the spool, from there into a real SQLite file and a
real PostgreSQL; `mixed` is N requests written as fast as they are taken, until all are stored;
`kept` is the same with prompts encrypted and rows chained.
"""

import argparse
import asyncio
import contextlib
import gc
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import func, select

from cascade.audit import record
from cascade.result import CascadeResult
from serving.store.chain import Chain
from serving.store.database import engine_for
from serving.store.inserter import Inserter
from serving.store.keys import VARIABLE, audit_keys, new_key
from serving.store.prompts import prompts
from serving.store.rows import encode
from serving.store.sink import SqlAuditSink
from serving.store.spool import Spool
from serving.store.tables import requests
from tests.builders import attempt, request, result
from tests.databases import postgres_server, sqlite_copy, sqlite_template

ROWS = 3  # of one request
SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Microseconds of `write`, milliseconds of lateness, rows a second."""

    database: str
    write_us: tuple[float, float]
    late_ms: tuple[float, float]
    late_without_ms: tuple[float, float]
    drained: float
    mixed: float
    kept: float


def main() -> None:
    """Measure on both databases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=500)
    given = parser.parse_args()
    table = Table(title=f"{given.requests:,} requests of {ROWS} rows; {given.rate} a second")
    table.add_column("database")
    for name in ("write", "timer late", "without sink", "rows/s, drain", "mixed", "kept"):
        table.add_column(name, justify="right")
    for name, url in databases():
        seen = measure(name, url, given.requests, given.rate)
        table.add_row(
            seen.database,
            "{:.1f} / {:.0f} us".format(*seen.write_us),
            "{:.2f} / {:.2f} ms".format(*seen.late_ms),
            "{:.2f} / {:.2f} ms".format(*seen.late_without_ms),
            f"{seen.drained:,.0f}",
            f"{seen.mixed:,.0f}",
            f"{seen.kept:,.0f}",
        )
    Console(width=110).print(table, "Two numbers are the median and the 99th percentile.")


def databases() -> Iterator[tuple[str, str]]:
    """Fresh ones, one after the other."""
    with tempfile.TemporaryDirectory() as folder, sqlite_template() as template:
        yield "SQLite", sqlite_copy(template, Path(folder)).url
    with postgres_server() as server, server.database(migrated=True) as database:
        yield "PostgreSQL", database.url


def measure(name: str, url: str, number: int, rate: int) -> Measured:
    """All numbers of one database."""
    keys = audit_keys({VARIABLE: new_key()})
    if keys is None:
        raise AssertionError("a key was given")
    _, late_without = asyncio.run(paced(None, rate))
    with running(url) as sink:
        writes, late = asyncio.run(paced(sink, rate))
    return Measured(
        database=name,
        write_us=quantiles(writes, 1e6),
        late_ms=quantiles(late, 1e3),
        late_without_ms=quantiles(late_without, 1e3),
        drained=drained(url, number),
        mixed=mixed(url, "m", number),
        kept=mixed(url, "k", number, prompts=prompts("full", keys), chain=Chain(keys)),
    )


@contextlib.contextmanager
def running(url: str, **options: Any) -> Iterator[SqlAuditSink]:
    """A sink at work, with a spool of its own."""
    engine = engine_for(url)
    with tempfile.TemporaryDirectory() as folder:
        sink = SqlAuditSink(engine, Path(folder), **options)
        sink.start()
        yield sink
        sink.close(timeout=60)
    engine.dispose()


async def paced(sink: SqlAuditSink | None, rate: int) -> tuple[list[float], list[float]]:
    """Seconds of each write, and how late the timer was, at a steady rate."""
    given = answers("p", rate * SECONDS)
    gc.collect()
    gc.freeze()  # a service does not hold thousands of results for the collector to look through
    writes, late = [], []
    begin = time.perf_counter()
    for number, each in enumerate(given):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        late.append(max(0.0, time.perf_counter() - due))
        before = time.perf_counter()
        if sink is not None:
            sink.write(each)
        writes.append(time.perf_counter() - before)
    return writes, late


def drained(url: str, number: int) -> float:
    """Rows a second from a full spool into the database."""
    engine = engine_for(url)
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder))
        lines = [encode(record(each)) for each in answers("d", number)]
        for first in range(0, number, 100):
            spool.put(lines[first : first + 100])
        inserter = Inserter(spool, engine)
        before = time.perf_counter()
        inserter.start()
        inserter.stop(timeout=600)
        took = time.perf_counter() - before
        with engine.connect() as connection:
            of_this = select(func.count()).where(requests.c.id.startswith("d-"))
            if connection.scalar(of_this) != number:
                raise SystemExit("not every row was stored")
    engine.dispose()
    return number * ROWS / took


def mixed(url: str, prefix: str, number: int, **options: Any) -> float:
    """Rows a second from `write` into the database, everything at work."""
    given = answers(prefix, number)
    with running(url, **options) as sink:
        before = time.perf_counter()
        for each in given:
            sink.write(each)
        if not sink.flush(timeout=600):
            raise SystemExit("not every row was stored in time")
        return number * ROWS / (time.perf_counter() - before)


def answers(prefix: str, number: int) -> list[CascadeResult]:
    """Results of two attempts each."""
    given = result(attempts=(attempt(0), attempt(1, tier="large")))
    return [
        replace(given, request=request(id=f"{prefix}-{count:08d}"), started_at=time.time())
        for count in range(number)
    ]


def quantiles(values: list[float], scale: float) -> tuple[float, float]:
    """Median and 99th percentile."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] * scale, ordered[len(ordered) * 99 // 100] * scale


if __name__ == "__main__":
    main()
