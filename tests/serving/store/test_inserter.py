"""When batches go from the spool into the database."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cascade.audit import record
from serving.store.inserter import Inserter
from serving.store.journal import Journal, Limits
from serving.store.rows import encode
from serving.store.spool import Spool
from tests.builders import escalated
from tests.serving.store.waiting import eventually, files, stored_ids

FOR_EVER = 600.0


@pytest.fixture
def folder(spool: Path) -> Spool:
    made = Spool(spool)
    made.open()
    return made


@pytest.fixture
def inserter(folder: Spool, engine: Engine) -> Iterator[Inserter]:
    made = Inserter(folder, engine, gather_seconds=FOR_EVER)
    made.start()
    yield made
    made.stop(5.0)


@pytest.fixture
def put(folder: Spool, inserter: Inserter) -> Callable[[str], None]:
    def one(name: str) -> None:
        folder.put([encode(record(escalated(name)))])
        inserter.written()

    return one


def test_a_batch_after_a_quiet_time_goes_at_once(
    put: Callable[[str], None], engine: Engine
) -> None:
    put("r1")
    eventually(lambda: stored_ids(engine) == ["r1"])


def test_those_that_follow_wait_for_each_other_until_somebody_waits_for_them(
    put: Callable[[str], None], inserter: Inserter, engine: Engine, spool: Path
) -> None:
    put("r1")
    eventually(lambda: files(spool) == [])
    put("r2")
    put("r3")
    time.sleep(0.3)  # in which they would have gone
    assert stored_ids(engine) == ["r1"]
    inserter.hurry()
    eventually(lambda: stored_ids(engine) == ["r1", "r2", "r3"])


def test_what_is_urgent_waits_for_no_others_and_takes_along_those_that_wait(
    folder: Spool, inserter: Inserter, engine: Engine, spool: Path
) -> None:
    limits = Limits(flush_interval=0.01)
    journal = Journal(folder, limits, inserter.written, inserter.hurry)
    journal.start()
    journal.append(escalated("r1"))
    eventually(lambda: stored_ids(engine) == ["r1"] and files(spool) == [])
    journal.append(escalated("r2"))
    eventually(lambda: len(files(spool)) == 1)
    journal.append(escalated("r3"), urgent=True)
    eventually(lambda: stored_ids(engine) == ["r1", "r2", "r3"])
    journal.stop(5.0)


def test_whoever_stops_it_need_not_wait_for_what_may_come(
    put: Callable[[str], None], inserter: Inserter, engine: Engine, spool: Path
) -> None:
    put("r1")
    eventually(lambda: files(spool) == [])
    put("r2")
    inserter.stop(30.0)
    assert stored_ids(engine) == ["r1", "r2"]


def test_a_backlog_that_takes_several_transactions_goes_without_a_pause(
    folder: Spool, engine: Engine, spool: Path
) -> None:
    for number in range(250):  # more files than are held open at once
        folder.put([encode(record(escalated(f"r{number}")))])
    inserter = Inserter(folder, engine, gather_seconds=FOR_EVER)
    inserter.start()
    eventually(lambda: files(spool) == [])
    inserter.stop(5.0)
    assert len(stored_ids(engine)) == 250
