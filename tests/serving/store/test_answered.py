"""Which keys were answered, before the database knows."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cascade.audit import key_hash, record
from cascade.errors import AuditError
from cascade.result import CascadeResult
from cascade.types import Failure
from serving.store.answered import Answered
from serving.store.journal import Limits
from serving.store.lookup import Lookup
from serving.store.rows import encode
from serving.store.spool import Spool
from tests.builders import request, result
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import eventually

FAULT = Failure(type="NoAnswerError", message="nobody answered", status=503)


def keyed(request_id: str, key: str = "k", tenant: str = "default") -> CascadeResult:
    return result(request=request(id=request_id, idempotency_key=key, tenant=tenant))


def found(answered: Answered, key: str = "k", tenant: str = "default") -> str | None:
    return answered.find(tenant, str(key_hash(key)))


def test_an_answer_is_remembered_by_tenant_and_key() -> None:
    answered = Answered()
    answered.note(keyed("r1"))
    answered.note(replace(keyed("r2", key="l"), degraded=True))
    assert found(answered) == "r1"
    assert found(answered, key="l") == "r2"
    assert found(answered, tenant="other") is None


@pytest.mark.parametrize(
    "given",
    [
        replace(keyed("r1"), error=FAULT),
        replace(keyed("r1"), cancelled=True),
        keyed("r1", key=""),
    ],
    ids=["failed", "cancelled", "without a key"],
)
def test_what_is_no_answer_is_not_remembered(given: CascadeResult) -> None:
    answered = Answered()
    answered.note(given)
    answered.read([encode(record(given))])
    assert found(answered) is None


def test_lines_of_the_spool_are_remembered_and_damaged_ones_are_left_to_the_inserter() -> None:
    answered = Answered()
    damaged = [b"{", b'"idempotency_hash":"', b'{"idempotency_hash":"x"}']
    answered.read([*damaged, encode(record(keyed("r1")))])
    assert found(answered) == "r1"


def test_the_oldest_key_goes_when_there_is_no_room() -> None:
    answered = Answered(most_keys=2)
    for number in range(3):
        answered.note(keyed(f"r{number}", key=f"k{number}"))
    assert [found(answered, f"k{number}") for number in range(3)] == [None, "r1", "r2"]


async def test_a_sink_knows_a_key_before_and_after_it_is_stored(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    sink = open_sink(limits=Limits(flush_interval=60))
    assert await sink.answered("default", "k") is None
    sink.write(keyed("r1"))
    assert sink.answered_lately("default", "k") == "r1"
    assert await sink.answered("default", "k") == "r1"
    assert sink.flush(timeout=30)
    lookup = Lookup(engine)
    assert lookup.answered("default", str(key_hash("k"))) == "r1"
    assert lookup.answered("other", str(key_hash("k"))) is None
    lookup.close()


async def test_the_database_remembers_no_failure(open_sink: SinkFactory, engine: Engine) -> None:
    sink = open_sink()
    sink.write(replace(keyed("r1"), error=FAULT))
    assert sink.flush(timeout=30)
    assert await sink.answered("default", "k") is None


async def test_in_an_outage_only_memory_and_the_spool_are_asked(
    open_sink: SinkFactory, database: Database, spool: Path
) -> None:
    before = Spool(spool)
    before.open()
    before.put([encode(record(keyed("r1")))])
    with database.outage():
        sink = open_sink()
        eventually(lambda: sink.state().status == "degraded")
        assert await sink.answered("default", "k") == "r1"
        with pytest.raises(AuditError, match="cannot be asked"):
            await sink.answered("default", "another")


async def test_a_database_that_hangs_is_given_up(engine: Engine) -> None:
    lookup, gate = Lookup(engine), threading.Event()
    try:
        with pytest.raises(AuditError, match="did not answer in time"):
            await lookup.within(lambda: gate.wait(30), 0.01)
    finally:
        gate.set()
        lookup.close()
    with pytest.raises(AuditError, match="closed"):
        await lookup.within(lambda: None)
