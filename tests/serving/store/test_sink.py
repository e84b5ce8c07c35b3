import logging
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Engine, text

from cascade.audit import record
from cascade.types import Cost
from serving.store.database import engine_for
from serving.store.inserter import Inserter
from serving.store.journal import Limits
from serving.store.rows import encode
from serving.store.sink import SqlAuditSink
from serving.store.spool import Spool
from tests.builders import attempt, escalated, request, result
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import eventually, files, stored_attempts, stored_ids


def names(first: int, last: int) -> list[str]:
    return [f"r{number:05d}" for number in range(first, last)]


def write(sink: SqlAuditSink, ids: list[str]) -> None:
    for name in ids:
        sink.write(escalated(name))


def test_what_is_written_is_in_the_database_after_a_flush(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    sink = open_sink()
    write(sink, names(0, 2500))
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 2500)
    assert stored_attempts(engine) == [(name, i) for name in names(0, 2500) for i in range(3)]
    assert files(spool, "*") == []
    assert sink.state().status == "ok"


def test_a_flush_with_nothing_to_do_returns_at_once(open_sink: SinkFactory) -> None:
    assert open_sink().flush(timeout=5)


def test_rows_arrive_without_a_flush(open_sink: SinkFactory, engine: Engine) -> None:
    write(open_sink(limits=Limits(flush_interval=0.01)), names(0, 3))
    eventually(lambda: stored_ids(engine) == names(0, 3))


def test_the_row_of_a_request_with_a_key_does_not_wait_for_the_flush_interval(
    open_sink: SinkFactory, engine: Engine
) -> None:
    sink = open_sink(limits=Limits(flush_interval=600))
    sink.write(result(request=request(id="r00000", idempotency_key="k")))
    eventually(lambda: stored_ids(engine) == names(0, 1))


def test_an_outage_slows_no_request_and_loses_no_row(
    open_sink: SinkFactory, engine: Engine, database: Database
) -> None:
    sink = open_sink(degraded_after=0.5)
    write(sink, names(0, 10))
    assert sink.flush(timeout=30)
    with database.outage():
        began = time.perf_counter()
        write(sink, names(10, 510))
        # Waiting for the database even once a write would take minutes.
        assert time.perf_counter() - began < 10
        assert not sink.flush(timeout=0.3)
        eventually(lambda: sink.state().status == "degraded")
        eventually(lambda: sink.state().queued == 0)
        state = sink.state()
        assert state.room
        assert state.reason
        assert (state.backlog.rows, state.queued, state.dropped) == (500, 0, 0)
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 510)
    eventually(lambda: sink.state().status == "ok")


def test_an_outage_is_noticed_before_there_is_a_row(
    open_sink: SinkFactory, database: Database
) -> None:
    with database.outage():
        sink = open_sink()
        eventually(lambda: sink.state().status == "degraded")
        assert sink.state().backlog.rows == 0
    eventually(lambda: sink.state().status == "ok")


def test_a_database_without_tables_says_what_to_run_and_takes_the_rows_later(
    open_sink: SinkFactory, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE attempts RENAME TO elsewhere"))
    sink = open_sink()
    write(sink, names(0, 5))
    eventually(lambda: "run `cascade db upgrade`" in sink.state().reason)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO attempts"))
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 5)


def test_rows_left_behind_are_read_back_at_the_next_start(
    open_sink: SinkFactory, engine: Engine, spool: Path, database: Database
) -> None:
    with database.outage():
        first = open_sink()
        write(first, names(0, 30))
        first.close(timeout=1)
        assert len(files(spool)) == 1
    assert open_sink().flush(timeout=30)
    assert stored_ids(engine) == names(0, 30)
    assert files(spool, "*") == []


def test_a_row_that_was_inserted_already_is_not_doubled(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    lines = [encode(record(escalated(name))) for name in names(0, 4)]
    before = Spool(spool)
    before.open()
    before.put(lines[:3])
    before.put(lines[1:])  # as after a crash between the commit and the removal of the file
    sink = open_sink()
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 4)
    assert len(stored_attempts(engine)) == 12
    assert sink.state().refused == 0


def test_two_sinks_share_a_folder_and_every_row_is_there_once(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    one, two = (open_sink(limits=Limits(flush_interval=0.005)) for _ in range(2))
    for number in range(0, 1000, 2):
        write(one, names(number, number + 1))
        write(two, names(number + 1, number + 2))
    assert one.flush(timeout=30)
    assert two.flush(timeout=30)
    assert stored_ids(engine) == names(0, 1000)
    assert files(spool, "*") == []


def test_closing_stores_everything(open_sink: SinkFactory, engine: Engine, spool: Path) -> None:
    sink = open_sink(limits=Limits(flush_interval=60))
    write(sink, names(0, 1500))
    sink.close(timeout=30)
    assert stored_ids(engine) == names(0, 1500)
    assert files(spool, "*") == []


def test_closing_without_starting_is_allowed(engine: Engine, spool: Path) -> None:
    SqlAuditSink(engine, spool).close(timeout=1)


def test_what_comes_after_closing_is_counted_as_dropped(
    open_sink: SinkFactory, caplog: pytest.LogCaptureFixture
) -> None:
    sink = open_sink()
    sink.close(timeout=5)
    write(sink, names(0, 3))
    assert sink.state().dropped == 3
    assert caplog.text.count("no room for request") == 1


def test_a_refused_row_is_set_aside_and_holds_up_no_other(
    open_sink: SinkFactory, engine: Engine, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    huge = attempt(cost=Cost(input=10**7))  # more pico-dollars than 64 bits hold
    sink = open_sink()
    write(sink, names(0, 3))
    sink.write(result("bad-1", attempts=(huge,)))
    write(sink, names(3, 4))
    sink.write(result("bad-2", attempts=(huge,)))
    write(sink, names(4, 11))
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 11)
    assert len(stored_attempts(engine)) == 33
    assert sink.state().refused == 2
    kept = b"".join(path.read_bytes() for path in files(spool, "*.bad"))
    assert [orjson.loads(line)["id"] for line in kept.splitlines()] == ["bad-1", "bad-2"]
    assert str(files(spool, "*.bad")[0]) in caplog.text


def test_a_file_that_cannot_be_parsed_is_kept_and_holds_up_no_other(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    before = Spool(spool)
    before.open()
    before.put([b"\x00\x01 not json", encode(record(escalated("r00000")))])
    before.put([encode(record(escalated("r00001")))])
    sink = open_sink()
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 2)
    (aside,) = files(spool, "*.bad")
    assert aside.read_bytes() == b"\x00\x01 not json\n"
    assert sink.state().refused == 1


def test_a_line_that_is_nested_too_deep_for_the_database_is_kept_and_holds_up_no_other(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    nested = b'"beliefs":' + b'{"a":' * 600 + b"1" + b"}" * 600
    line = encode(record(escalated("bad"))).replace(b'"beliefs":{', nested + b',"unknown":{', 1)
    before = Spool(spool)
    before.open()
    before.put([line, encode(record(escalated("r00000")))])
    sink = open_sink()
    assert sink.flush(timeout=5)
    assert stored_ids(engine) == names(0, 1)
    (aside,) = files(spool, "*.bad")
    assert aside.read_bytes() == line + b"\n"


def test_a_result_that_cannot_be_flattened_is_counted_and_holds_up_no_other(
    open_sink: SinkFactory, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    sink = open_sink()
    sink.write(replace(result("broken"), attempts=(None,)))  # type: ignore[arg-type]
    write(sink, names(0, 1))
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 1)
    assert sink.state().dropped == 1
    assert "request broken cannot be audited" in caplog.text


def test_a_full_spool_keeps_rows_in_memory_and_says_so(
    open_sink: SinkFactory, engine: Engine, database: Database, spool: Path
) -> None:
    with database.outage():
        sink = open_sink(limits=Limits(flush_interval=0.01, spool_bytes=1))
        write(sink, names(0, 1))
        eventually(lambda: sink.state().backlog.rows == 1)
        write(sink, names(1, 5))
        eventually(lambda: sink.state().status == "full")
        state = sink.state()
        assert not state.room
        assert "limit" in state.reason
        assert (state.queued, state.dropped, len(files(spool))) == (4, 0, 1)
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 5)
    assert sink.state().status == "ok"


def test_closing_with_a_full_spool_still_brings_everything_into_it(
    open_sink: SinkFactory, engine: Engine, database: Database, spool: Path
) -> None:
    with database.outage():
        sink = open_sink(limits=Limits(flush_interval=0.01, spool_bytes=1))
        write(sink, names(0, 1))
        eventually(lambda: len(files(spool)) == 1)
        write(sink, names(1, 5))
        sink.close(timeout=1)
        assert Spool(spool).backlog().rows == 5
    assert open_sink().flush(timeout=30)
    assert stored_ids(engine) == names(0, 5)


def test_a_full_queue_counts_what_it_drops_and_complains_once_a_second(
    open_sink: SinkFactory, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(flush_interval=0.01, spool_bytes=1, queue_rows=2)
    with database.outage():
        sink = open_sink(limits=limits)
        write(sink, names(0, 1))
        eventually(lambda: sink.state().backlog.rows == 1)
        write(sink, names(1, 20))
        assert sink.state().dropped == 17
        assert sink.state().status == "full"
    assert caplog.text.count("no room for request") == 1


def test_a_spool_that_cannot_be_written_keeps_rows_in_memory(
    open_sink: SinkFactory, engine: Engine, spool: Path
) -> None:
    sink = open_sink(limits=Limits(flush_interval=0.01))
    spool.rmdir()
    write(sink, names(0, 5))
    eventually(lambda: "cannot be written" in sink.state().reason)
    assert sink.state().room
    spool.mkdir()
    assert sink.flush(timeout=30)
    assert stored_ids(engine) == names(0, 5)
    assert sink.state().status == "ok"


def test_rows_that_cannot_be_saved_at_closing_are_counted_in_the_log(
    open_sink: SinkFactory, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = open_sink(limits=Limits(flush_interval=0.01))
    spool.rmdir()
    write(sink, names(0, 5))
    sink.close(timeout=0.3)
    assert "5 audit rows are lost" in caplog.text


def test_a_long_outage_leaves_few_files(engine: Engine, spool: Path, database: Database) -> None:
    before = Spool(spool)
    before.open()
    for name in names(0, 150):
        before.put([encode(record(escalated(name)))])
    with database.outage():
        inserter = Inserter(before, engine)
        inserter.start()
        eventually(lambda: len(files(spool)) == 1)
    inserter.stop(timeout=30)
    assert stored_ids(engine) == names(0, 150)


def test_an_outage_is_logged_once_and_so_is_its_end(
    open_sink: SinkFactory, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        sink = open_sink()
        assert sink.flush(timeout=5)
        with database.outage():
            write(sink, names(0, 1))
            eventually(lambda: sink.state().status == "degraded")
            write(sink, names(1, 2))
            assert not sink.flush(timeout=1)
        assert sink.flush(timeout=30)
        eventually(lambda: "takes rows again" in caplog.text)  # said after the rows are gone
    assert caplog.text.count("audit rows wait in") == 1
    assert "Traceback" not in caplog.text


def test_the_folder_may_be_shared_by_processes_of_which_one_is_killed(
    engine: Engine, spool: Path
) -> None:
    mine = Spool(spool)
    mine.open()
    mine.put([encode(record(escalated("r00000")))])
    holds = (
        "import sys, time, pathlib\n"
        "from serving.store.spool import Spool\n"
        "with Spool(pathlib.Path(sys.argv[1])).claim(10) as claim:\n"
        "    print(len(claim.batches), flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", holds, spool], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"
        with mine.claim(10) as claim:
            assert claim.batches == []
        child.kill()
    with mine.claim(10) as claim:
        assert len(claim.batches) == 1
    engine.dispose()


def test_the_engine_is_left_to_its_owner(database: Database, spool: Path) -> None:
    engine = engine_for(database.url)
    sink = SqlAuditSink(engine, spool)
    sink.start()
    sink.close(timeout=5)
    assert stored_ids(engine) == []
    engine.dispose()
