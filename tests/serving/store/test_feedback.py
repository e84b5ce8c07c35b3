"""Feedback on its way into the database."""

import itertools
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from cascade.audit import record
from cascade.errors import AuditError
from serving.store.feedback import Feedback
from serving.store.journal import Limits
from serving.store.rows import decode, encode, insert
from serving.store.spool import Spool
from serving.store.tables import feedback
from tests.builders import escalated, result
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import eventually, files, stored_ids

GOOD = Feedback(
    request_id="r1",
    tenant="default",
    source="",
    given_at=100.0,
    score=0.9,
    label=None,
    correction=None,
    comment=None,
)


def stored(engine: Engine) -> list[Feedback]:
    with engine.connect() as connection:
        rows = connection.execute(select(feedback).order_by(*feedback.primary_key.columns))
        return [Feedback(**row) for row in rows.mappings()]


def store(engine: Engine, given: Sequence[Feedback]) -> None:
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in given])


@pytest.mark.parametrize(
    "given",
    [
        GOOD,
        replace(GOOD, score=None, label="bad", correction="4\n", comment="it said 5", source="ci"),
    ],
)
def test_it_comes_back_as_it_went_in(engine: Engine, given: Feedback) -> None:
    store(engine, [given])
    assert stored(engine) == [given]


def test_text_that_no_database_takes_is_made_storable(engine: Engine) -> None:
    store(engine, [replace(GOOD, correction="nul \0 and half a pair \ud83d")])
    assert stored(engine)[0].correction == "nul \ufffd and half a pair ?"


WORDS = [
    GOOD,
    replace(GOOD, given_at=101.0, score=0.1, comment="on second thoughts"),
    replace(GOOD, given_at=102.0, score=None, label="bad"),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("together", [True, False])
def test_the_last_word_wins_in_whatever_order_they_arrive(
    engine: Engine, order: Sequence[int], *, together: bool
) -> None:
    given = [WORDS[place] for place in order]
    for some in [given] if together else [[each] for each in given]:
        store(engine, some)
    assert stored(engine) == [WORDS[-1]]


def test_each_source_and_each_tenant_has_a_word_of_its_own(engine: Engine) -> None:
    given = [
        GOOD,
        replace(GOOD, source="ci", given_at=90.0),
        replace(GOOD, tenant="other", given_at=200.0, score=0.0),
        replace(GOOD, request_id="r2"),
    ]
    store(engine, given)
    assert len(stored(engine)) == 4


async def test_what_is_kept_is_in_the_database(open_sink: SinkFactory, engine: Engine) -> None:
    sink = open_sink()
    sink.write(result("r1"))
    assert await sink.keep(GOOD)
    assert stored(engine) == [GOOD]
    assert stored_ids(engine) == ["r1"]


async def test_an_outage_puts_it_into_the_spool_and_loses_nothing(
    open_sink: SinkFactory, engine: Engine, database: Database, spool: Path
) -> None:
    with database.outage():
        sink = open_sink()
        assert not await sink.keep(GOOD)
        (waiting,) = files(spool)
        assert b'{"feedback":{"request_id":"r1"' in waiting.read_bytes()
    assert sink.flush(timeout=30)
    assert stored(engine) == [GOOD]


async def test_without_room_it_is_refused(open_sink: SinkFactory) -> None:
    sink = open_sink(limits=Limits(queue_rows=0))
    with pytest.raises(AuditError, match="send it again later"):
        await sink.keep(GOOD)


async def test_after_closing_it_is_refused(open_sink: SinkFactory) -> None:
    sink = open_sink()
    sink.close(timeout=5)
    with pytest.raises(AuditError, match="send it again later"):
        await sink.keep(GOOD)


def test_its_request_may_arrive_later(open_sink: SinkFactory, engine: Engine, spool: Path) -> None:
    before = Spool(spool)
    before.open()
    before.put([encode(GOOD)])
    sink = open_sink()
    assert sink.flush(timeout=30)
    assert (stored(engine), stored_ids(engine)) == ([GOOD], [])
    sink.write(escalated("r1"))
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == ["r1"]


def test_a_line_that_is_no_feedback_is_set_aside(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    before = Spool(spool)
    before.open()
    before.put([b'{"feedback": {"request_id": 3}}', b'{"feedback": []}', encode(GOOD)])
    sink = open_sink()
    assert sink.flush(timeout=30)
    assert stored(engine) == [GOOD]
    assert sink.state().refused == 2


async def test_the_owner_of_a_request_is_known_as_soon_as_it_was_written(
    open_sink: SinkFactory,
) -> None:
    sink = open_sink(limits=Limits(flush_interval=60))
    sink.write(result("r1"))  # it is in memory only
    assert await sink.owner("r1") == "default"
    assert await sink.owner("r2") is None


async def test_in_an_outage_nobody_knows_the_owner(
    open_sink: SinkFactory, database: Database
) -> None:
    with database.outage():
        sink = open_sink()
        eventually(lambda: sink.state().status == "degraded")
        with pytest.raises(AuditError, match="cannot be asked"):
            await sink.owner("r1")


def test_feedback_outlives_a_killed_process(
    open_sink: SinkFactory, engine: Engine, database: Database, spool: Path
) -> None:
    program = (
        "import asyncio, os, signal, sys, pathlib;"
        "from serving.store.database import engine_for;"
        "from serving.store.sink import SqlAuditSink;"
        "from tests.serving.store.test_feedback import GOOD;"
        "sink = SqlAuditSink(engine_for(sys.argv[1]), pathlib.Path(sys.argv[2])); sink.start();"
        "asyncio.run(sink.keep(GOOD)); os.kill(os.getpid(), signal.SIGKILL)"
    )
    with database.outage():
        child = subprocess.run([sys.executable, "-c", program, database.url, spool], check=False)
        assert child.returncode == -signal.SIGKILL
    assert open_sink().flush(timeout=30)
    assert stored(engine) == [GOOD]


def test_an_older_line_of_a_request_still_becomes_rows(engine: Engine) -> None:
    line = encode(record(result("r1")))
    for name in (b'"usage_estimated":false,', b'"tries":1,', b'"idempotency_hash":null,'):
        assert name in line
        line = line.replace(name, b"")
    with engine.begin() as connection:
        insert(connection, [decode(line)])
    assert stored_ids(engine) == ["r1"]
