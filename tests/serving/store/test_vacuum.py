"""After a vacuum nothing of what was removed is in any file of the database."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import OperationalError

from cascade.audit import record
from cascade.errors import AuditError
from serving.store import schema
from serving.store.database import engine_for
from serving.store.removal import Removal, remove
from serving.store.tables import requests
from serving.store.vacuum import TABLES, vacuum
from tests.builders import escalated, request
from tests.databases import PostgresServer
from tests.serving.store.test_removal import store

USER = "kim-the-unforgettable"


def fill(engine: Engine, number: int) -> None:
    asked = [request(id=f"r{n}", user=USER if n % 2 else "lee") for n in range(number)]
    store(engine, [record(escalated(request=each)) for each in asked])


@pytest.fixture
def log(postgres: PostgresServer) -> Iterator[Engine]:
    with postgres.database(migrated=True) as database:
        engine = engine_for(database.url)
        yield engine
        engine.dispose()


def test_postgresql_keeps_what_was_removed_until_its_tables_are_written_anew(
    log: Engine,
) -> None:
    fill(log, 60)
    assert remove(log, Removal.of_user(USER), who="me").requests == 30
    assert USER in on_disk(log)
    told: list[int] = []
    vacuum(log, lambda: told.append(1))
    assert len(told) == len(TABLES)
    assert USER not in on_disk(log)
    with log.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM requests")) == 30
        assert connection.scalar(text("SHOW statement_timeout")) == "30s"


def test_who_may_not_rewrite_the_tables_is_told_so(log: Engine) -> None:
    with log.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE clerk LOGIN")
    clerk = engine_for(make_url(str(log.url)).set(username="clerk").render_as_string())
    try:
        with pytest.raises(AuditError, match="requests is not written anew: permission denied"):
            vacuum(clerk)
    finally:
        clerk.dispose()
        with log.begin() as connection:
            connection.exec_driver_sql("DROP ROLE clerk")


def on_disk(engine: Engine) -> str:
    """What the files of the tables hold, as the server reads them."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CHECKPOINT")
        content = b""
        for table in TABLES:
            path = connection.scalar(text(f"SELECT pg_relation_filepath('{table.name}')"))
            content += connection.scalar(text(f"SELECT pg_read_binary_file('{path}')")) or b""
    return content.decode("latin-1")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path}/cascade.db?timeout=0.2"
    schema.upgrade(url)
    engine = engine_for(url)
    yield engine
    engine.dispose()


def test_sqlite_gives_the_room_back(file: Engine, tmp_path: Path) -> None:
    fill(file, 600)
    remove(file, Removal.before(time.time() + 1), who="me")
    before = sum(path.stat().st_size for path in tmp_path.iterdir())
    vacuum(file)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 0.7 * before
    with file.connect() as connection:
        assert not connection.execute(requests.select()).all()


def test_while_somebody_reads_sqlite_keeps_what_was_removed_and_that_is_said(
    file: Engine, tmp_path: Path
) -> None:
    def kept() -> bool:
        return any(USER.encode() in path.read_bytes() for path in tmp_path.iterdir())

    fill(file, 60)
    with _other(tmp_path) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM requests").fetchall()
        remove(file, Removal.of_user(USER), who="me")
        with pytest.raises(AuditError, match="somebody reads the audit database"):
            vacuum(file)
        assert kept()
    vacuum(file)
    assert not kept()


def test_a_database_that_somebody_writes_all_the_time_is_a_fault_of_the_database(
    file: Engine, tmp_path: Path
) -> None:
    with _other(tmp_path) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            vacuum(file)


def _other(folder: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(folder / "cascade.db", isolation_level=None))
