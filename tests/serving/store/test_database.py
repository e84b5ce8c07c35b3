import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, delete, func, insert, select, text
from sqlalchemy.exc import IntegrityError

from cascade.audit import record
from cascade.errors import AuditError, ConfigError
from serving.store import schema
from serving.store.database import RETRY_SECONDS, engine_for, faults_of, parse, shown
from serving.store.rows import decode, encode
from serving.store.rows import insert as store
from serving.store.tables import attempts, requests
from tests.builders import attempt, escalated, result
from tests.databases import Database, PostgresServer


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_urls_mean_psycopg_3(scheme: str) -> None:
    assert parse(f"{scheme}://me@db/audit").drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("cascade.db", "is not a database URL"),
        ("mysql://db/audit", "not supported"),
        ("postgresql+asyncpg://db/audit", "not supported"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_a_url_that_cannot_work_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        engine_for(url)
    assert caught.value.param == "audit.url"


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'cascade-router\[postgres\]'"):
        engine_for("postgresql://db/audit")


def test_the_password_is_not_shown() -> None:
    assert "secret" not in shown("postgresql://me:secret@db/audit")


def test_sqlite_runs_in_wal_mode_and_watches_foreign_keys(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/folder/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    with engine.connect() as connection:
        settings = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "foreign_keys", "synchronous", "busy_timeout")
        }
    engine.dispose()
    assert settings == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 1,
        "busy_timeout": 5000,
    }


@pytest.mark.postgres
def test_postgres_statements_have_a_time_limit(postgres: PostgresServer) -> None:
    engine = engine_for(postgres.url("migrated"))
    with engine.connect() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "30s"
    engine.dispose()


@pytest.mark.postgres
def test_settings_in_the_url_win(postgres: PostgresServer) -> None:
    engine = engine_for(postgres.url("migrated") + "&options=-c%20statement_timeout%3D7s")
    with engine.connect() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "7s"
    engine.dispose()


def test_an_attempt_without_its_request_is_refused_without_showing_values(engine: Engine) -> None:
    entry = decode(encode(record(result(attempts=(attempt(tier="confidential"),)))))
    with pytest.raises(IntegrityError) as caught, engine.begin() as connection:
        connection.execute(insert(attempts), entry.attempts)
    assert "confidential" not in str(caught.value).split("DETAIL")[0]


def test_deleting_a_request_deletes_its_attempts(engine: Engine) -> None:
    with engine.begin() as connection:
        store(connection, [decode(encode(record(escalated())))])
        assert connection.scalar(select(func.count()).select_from(attempts)) == 3
        connection.execute(delete(requests))
        assert connection.scalar(select(func.count()).select_from(attempts)) == 0


def test_a_database_that_is_down_is_named_with_what_to_do(database: Database) -> None:
    with (
        database.outage(),
        pytest.raises(AuditError, match=r"Is audit\.url right"),
    ):
        schema.upgrade(database.url)


def test_who_finds_all_connections_in_use_is_told_when_to_try_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/busy.db"
    engine = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.01)
    with (
        engine.connect(),
        pytest.raises(AuditError, match="are in use") as caught,
        faults_of(url),
    ):
        engine.connect()
    assert caught.value.retry_after == RETRY_SECONDS
    engine.dispose()


def test_a_database_without_tables_says_how_to_make_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    engine = engine_for(url)
    with (
        pytest.raises(AuditError, match="cascade db"),
        faults_of(url),
        engine.connect() as connection,
    ):
        connection.execute(text("SELECT * FROM requests"))
    engine.dispose()
