"""Calls that are made after their request was recorded, on their way into the database."""

import time
from collections.abc import Sequence

from sqlalchemy import Engine

from cascade.audit import record
from cascade.types import Attempt, Kind, Step
from serving.store import queries
from serving.store.inserter import Inserter
from serving.store.journal import Limits
from serving.store.late import Late
from serving.store.rows import decode, encode, insert
from serving.store.spool import Spool
from tests.builders import attempt, completion, escalated, failed, verdict
from tests.serving.store.waiting import eventually, files, stored_attempts, stored_ids


def shadow(index: int = 3, **overrides: object) -> Attempt:
    return attempt(index, kind=Kind.SHADOW, outcome=None, propensity=0.02, **overrides)


def late(request_id: str = "r1", *calls: Attempt, ago: float = 0.0) -> Late:
    return Late(request_id=request_id, attempts=calls or (shadow(),), at=time.time() - ago)


def lines(items: Sequence[object]) -> list[bytes]:
    return [encode(each) for each in items]


def test_it_joins_its_request_and_is_shown_with_it(engine: Engine, open_sink) -> None:
    sink = open_sink(limits=Limits(flush_interval=0.01))
    judged = shadow(4, step=Step(tier="small", judge="quality"), verdict=verdict(0.7))
    sink.write(escalated("r1"))
    sink.add(late("r1", shadow(), judged))
    assert sink.flush(5)
    eventually(lambda: len(stored_attempts(engine)) == 5)
    shown = queries.show(engine, "r1").attempts
    assert [call.index for call in shown] == [0, 1, 2, 3, 4]
    assert [call.kind for call in shown[3:]] == ["shadow", "shadow"]
    assert (shown[3].judge, shown[3].propensity) == (None, 0.02)
    assert (shown[4].judge, shown[4].score, shown[4].tier) == ("quality", 0.7, "small")


def test_one_that_comes_before_its_request_waits_for_it(engine: Engine, spool, open_sink) -> None:
    folder = Spool(spool)
    folder.open()
    folder.put(lines([late("r1")]))
    sink = open_sink(limits=Limits(flush_interval=0.01))
    eventually(lambda: len(files(spool, "*.later")) == 1)
    assert stored_attempts(engine) == []
    sink.write(escalated("r1"))
    eventually(lambda: stored_attempts(engine) == [("r1", 0), ("r1", 1), ("r1", 2), ("r1", 3)])
    assert sink.state().refused == 0
    assert files(spool, "*.later") == files(spool) == []


def test_it_holds_nothing_else_up(engine: Engine, spool, open_sink) -> None:
    folder = Spool(spool)
    folder.open()
    other = record(escalated("r2"))
    folder.put(lines([late("r1"), other, late("r2")]))
    open_sink()
    eventually(lambda: ("r2", 3) in stored_attempts(engine))
    assert stored_ids(engine) == ["r2"]
    eventually(lambda: len(files(spool, "*.later")) == 1)


def test_one_whose_request_never_comes_is_set_aside(engine: Engine, spool) -> None:
    folder = Spool(spool)
    folder.open()
    folder.put(lines([late("r1", ago=4000.0)]))
    inserter = Inserter(folder, engine, again_seconds=0.0)
    inserter.start()
    eventually(lambda: inserter.refused == 1)
    inserter.stop(5.0)
    (kept,) = files(spool, "*.bad")
    assert b'"late"' in kept.read_bytes()
    assert stored_attempts(engine) == []


def test_after_a_long_outage_it_waits_for_a_request_in_another_process(
    engine: Engine, spool, open_sink
) -> None:
    folder = Spool(spool)
    folder.open()
    folder.put(lines([record(escalated("r1"))]))
    with folder.claim(10):  # another process is about to write the request
        folder.put(lines([late("r1", ago=4000.0)]))
        sink = open_sink()
        eventually(lambda: len(files(spool, "*.later")) == 1)
    eventually(lambda: ("r1", 3) in stored_attempts(engine))
    assert sink.state().refused == 0
    assert files(spool, "*.bad") == []


def test_it_is_stored_once_however_often_it_comes(engine: Engine) -> None:
    entries = [decode(line) for line in lines([record(escalated("r1")), late(), late()])]
    with engine.begin() as connection:
        insert(connection, entries)
        insert(connection, entries)
    assert [index for _, index in stored_attempts(engine)] == [0, 1, 2, 3]


def test_what_no_database_takes_is_made_storable(engine: Engine) -> None:
    strange = shadow(3, completion=completion(model="a\0b"))
    broken = failed(4, kind=Kind.SHADOW, reason="\ud800")
    entries = [
        decode(line) for line in lines([record(escalated("r1")), late("r1", strange, broken)])
    ]
    with engine.begin() as connection:
        insert(connection, entries)
    shown = queries.show(engine, "r1").attempts
    assert shown[3].model == "a\ufffdb"
    assert shown[4].error_type == "BackendConnectionError"


def test_a_result_is_gone_from_the_spool_only_when_it_is_stored(spool) -> None:
    folder = Spool(spool)
    folder.open()
    folder.postpone([b"{}", b"{}"])
    assert folder.batches() == []
    folder.resume(60.0)
    assert folder.batches() == []
    folder.resume(0.0)
    assert [batch.rows for batch in folder.batches()] == [2]
