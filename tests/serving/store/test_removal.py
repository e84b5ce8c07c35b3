import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, insert, select

from cascade.audit import key_hash, record
from serving.store import schema
from serving.store.database import WRITES, engine_for
from serving.store.feedback import Feedback
from serving.store.pruning import DAY_SECONDS, Pruner
from serving.store.removal import Removal, Removed, remove
from serving.store.rows import decode, encode
from serving.store.rows import insert as insert_entries
from serving.store.stats import stats
from serving.store.sums import TABLES
from serving.store.tables import (
    attempts,
    deletions,
    feedback,
    request_sums,
    requests,
    uncounted,
)
from tests.builders import escalated, request
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory
from tests.serving.store.waiting import eventually, stored_ids


def word(request_id: str, tenant: str = "default", given_at: float = 1000.0) -> Feedback:
    return Feedback(
        request_id=request_id,
        tenant=tenant,
        source="",
        given_at=given_at,
        score=1.0,
        label=None,
        correction=None,
        comment=None,
    )


def store(engine: Engine, records: Sequence[object]) -> None:
    with engine.execution_options(**WRITES).begin() as connection:
        insert_entries(connection, [decode(encode(each)) for each in records])  # type: ignore[arg-type]


@pytest.fixture
def log(engine: Engine) -> Engine:
    """Ten requests, a second apart, of two tenants and two users, each with a word of feedback."""
    given = [
        record(
            escalated(
                request=request(id=f"r{n}", tenant="ab"[n % 2], user=["kim", ""][n % 3 > 0]),
                started_at=100.0 + n,
            )
        )
        for n in range(10)
    ]
    store(engine, [*given, *(word(each.id, each.tenant) for each in given), word("nobody's", "a")])
    return engine


def left(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        asked = stored_ids(engine)
        calls = set(connection.scalars(select(attempts.c.request_id)))
        said = set(connection.scalars(select(feedback.c.request_id)))
        assert calls == set(asked) == said - {"nobody's"}
        return asked


def test_what_is_old_goes_with_all_that_belongs_to_it_and_the_sums_stay(log: Engine) -> None:
    before = stats(log)
    told = []

    def going_on(number: int) -> bool:
        told.append(number)
        return True

    removal = Removal.before(107.0)
    assert removal.number(log) == 7
    gone = remove(log, removal, who="me", batch=3, going_on=going_on)
    assert gone == Removed(requests=7, attempts=21, feedback=7)
    assert told == [3, 3, 1]
    assert left(log) == ["r7", "r8", "r9"]
    after = stats(log)
    assert (after.requests, after.dollars, after.scored) == (10, before.dollars, 10)
    with log.connect() as connection:
        note = connection.execute(select(deletions)).mappings().one()
    assert (note["kind"], note["subject"], note["who"]) == ("retention", "before 107", "me")
    assert (note["requests"], note["attempts"], note["feedback"]) == (7, 21, 7)


def test_feedback_to_requests_that_are_not_there_goes_when_it_is_old(log: Engine) -> None:
    assert remove(log, Removal.before(500.0), who="me").requests == 10
    with log.connect() as connection:
        assert connection.scalars(select(feedback.c.request_id)).all() == ["nobody's"]
    assert remove(log, Removal.before(2000.0), who="me") == Removed(feedback=1)


def test_a_tenant_goes_with_its_sums(log: Engine) -> None:
    gone = remove(log, Removal.of_tenant("a"), who="me")
    assert gone == Removed(requests=5, attempts=15, feedback=6)
    assert left(log) == ["r1", "r3", "r5", "r7", "r9"]
    assert stats(log).requests == 5
    with log.connect() as connection:
        assert set(connection.scalars(select(request_sums.c.tenant))) == {"b"}
        assert connection.scalar(select(deletions.c.subject)) == "a"


def test_a_user_goes_and_is_noted_as_a_hash(log: Engine) -> None:
    assert remove(log, Removal.of_user("kim", "a"), who="me").requests == 2
    assert remove(log, Removal.of_user("kim"), who="me").requests == 2
    assert left(log) == ["r1", "r2", "r4", "r5", "r7", "r8"]
    with log.connect() as connection:
        assert set(connection.scalars(select(deletions.c.subject))) == {key_hash("kim")}


def test_where_there_is_nothing_to_remove_nothing_is_noted(log: Engine) -> None:
    assert remove(log, Removal.before(1.0), who="me") == Removed()
    assert remove(log, Removal.of_user("lee"), who="me") == Removed()
    with log.connect() as connection:
        assert connection.execute(select(deletions)).all() == []


def test_it_ends_between_two_batches_when_it_is_told_to(log: Engine) -> None:
    gone = remove(log, Removal.before(500.0), who="me", batch=4, going_on=lambda _: False)
    assert gone.requests == 4
    assert len(left(log)) == 6


def test_rows_that_are_not_added_up_yet_are_before_they_go(log: Engine) -> None:
    with log.begin() as connection:
        for table in TABLES:
            connection.execute(delete(table))
        connection.execute(insert(uncounted).from_select(["request_id"], select(requests.c.id)))
    remove(log, Removal.before(500.0), who="me")
    assert stats(log).requests == 10


def test_what_is_written_meanwhile_is_stored(
    engine: Engine, database: Database, open_sink: SinkFactory
) -> None:
    patient = engine_for(database.url.replace("?timeout=0.5", ""))  # SQLite's turns are not fair
    old = [record(escalated(f"o{n:04d}", started_at=100.0)) for n in range(300)]
    store(engine, old)
    sink = open_sink()
    pruning = threading.Thread(
        target=remove, args=(patient, Removal.before(200.0)), kwargs={"who": "me", "batch": 20}
    )
    pruning.start()
    for number in range(100):
        sink.write(escalated(f"n{number:03d}", started_at=1000.0))
        time.sleep(0.001)
    pruning.join()
    patient.dispose()
    assert sink.flush(15)
    assert stored_ids(engine) == [f"n{number:03d}" for number in range(100)]


async def test_the_service_removes_what_is_too_old(engine: Engine) -> None:
    now = time.time()
    ages = {"old": 3.0, "young": 1.0}
    store(
        engine,
        [
            replace(record(escalated(name)), created_at=now - days * DAY_SECONDS)
            for name, days in ages.items()
        ],
    )
    pruner = Pruner(engine, days=2.0, first=0.0)
    await pruner.start()
    await asyncio.to_thread(eventually, lambda: stored_ids(engine) == ["young"])
    await pruner.aclose()


async def test_a_database_that_is_not_there_ends_no_pruner(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE uncounted")
    pruner = Pruner(engine, days=2.0, first=0.0)
    with caplog.at_level(logging.WARNING):
        await pruner.start()
        await asyncio.to_thread(eventually, lambda: "old audit rows stay" in caplog.text)
    await pruner.aclose()


@pytest.mark.parametrize(
    "removal", [Removal.of_user("kim-the-unforgettable"), Removal.of_tenant("default")]
)
def test_nothing_of_whom_is_deleted_can_be_read_in_the_files_of_sqlite(
    tmp_path: Path, removal: Removal
) -> None:
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    asked = [request(id=f"r{n}", user="kim-the-unforgettable") for n in range(50)]
    store(engine, [record(escalated(request=each)) for each in asked])
    assert b"unforgettable" in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert remove(engine, removal, who="me").requests == 50
    assert b"unforgettable" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    engine.dispose()
