"""Waits for what other threads and processes do, without guessing how long they take."""

import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine, select

from serving.store.tables import attempts, requests


def eventually(condition: Callable[[], bool], timeout: float = 15.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def stored_ids(engine: Engine) -> list[str]:
    """Every stored request, so that one stored twice is seen twice."""
    with engine.connect() as connection:
        return sorted(connection.scalars(select(requests.c.id)))


def stored_attempts(engine: Engine) -> list[tuple[str, int]]:
    with engine.connect() as connection:
        rows = connection.execute(select(attempts.c.request_id, attempts.c.index))
        return sorted((row[0], row[1]) for row in rows)


def files(spool: Path, pattern: str = "*.jsonl") -> list[Path]:
    return sorted(spool.glob(pattern))
