import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import files, stored_attempts, stored_ids

FLUSH_INTERVAL = 0.2
SLACK = 1.0  # a busy machine may let the journal's thread wait this long


def start(url: str, spool: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.serving.store.writing", url, spool]
    return subprocess.Popen(
        [*arguments, str(FLUSH_INTERVAL)], stdout=subprocess.PIPE, text=True, bufsize=1
    )


def end(child: subprocess.Popen[str], how: signal.Signals, after: float) -> tuple[list[str], int]:
    """Let it write for a while, end it, and return its lines and the time of the signal."""
    assert child.stdout is not None
    lines = [child.stdout.readline()]
    until = time.monotonic() + after
    while time.monotonic() < until:
        lines.append(child.stdout.readline())
    child.send_signal(how)
    at = time.time_ns()
    lines += child.stdout.readlines()
    child.wait(timeout=60)
    child.stdout.close()
    return [line for line in lines if line.endswith("\n")], at


@pytest.mark.parametrize("database_is_up", [True, False])
def test_sigkill_loses_at_most_one_flush_interval(
    database: Database,
    engine: Engine,
    spool: Path,
    open_sink: SinkFactory,
    *,
    database_is_up: bool,
) -> None:
    with contextlib.nullcontext() if database_is_up else database.outage():
        child = start(database.url, spool)
        lines, killed_at = end(child, signal.SIGKILL, after=1.0)
        assert child.returncode == -signal.SIGKILL
    assert open_sink().flush(timeout=30)
    assert files(spool) == []
    stored = stored_ids(engine)
    assert stored == [f"r{number:07d}" for number in range(len(stored))]
    assert len(stored_attempts(engine)) == 3 * len(stored)
    taken = [(int(number), int(at)) for number, at in (line.split() for line in lines)]
    lost = [at for number, at in taken if number >= len(stored)]
    assert all(killed_at - at < (FLUSH_INTERVAL + SLACK) * 1e9 for at in lost)
    assert len(stored) > 100


def test_sigterm_loses_nothing(database: Database, engine: Engine, spool: Path) -> None:
    child = start(database.url, spool)
    lines, _ = end(child, signal.SIGTERM, after=0.5)
    assert child.returncode == 0
    assert stored_ids(engine) == [f"r{number:07d}" for number in range(len(lines))]
    assert files(spool, "*") == []


def test_sigterm_during_an_outage_keeps_everything_for_the_next_start(
    database: Database, engine: Engine, spool: Path, open_sink: SinkFactory
) -> None:
    with database.outage():
        child = start(database.url, spool)
        lines, _ = end(child, signal.SIGTERM, after=0.5)
        assert child.returncode == 0
    assert open_sink().flush(timeout=30)
    assert files(spool) == []
    assert stored_ids(engine) == [f"r{number:07d}" for number in range(len(lines))]
