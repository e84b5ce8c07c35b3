from pathlib import Path

import pytest
from sqlalchemy import text

from cascade.errors import AuditError, ConfigError
from serving.store import schema
from serving.store.database import engine_for
from tests.databases import Database


def test_a_file_that_is_not_there_is_not_created_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "cascade.db"
    assert schema.check(f"sqlite:///{path}").current is None
    assert not path.exists()


def test_a_database_at_head_passes(database: Database) -> None:
    assert schema.check(database.url).at_head
    schema.require_head(database.url)


def test_a_database_that_is_not_at_head_says_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run `cascade db upgrade`"):
        schema.require_head(f"sqlite:///{tmp_path}/cascade.db")


def test_a_database_of_a_newer_version_is_left_alone(database: Database) -> None:
    engine = engine_for(database.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for look in (schema.check, schema.upgrade):
        with pytest.raises(ConfigError, match=r"9999.*newer Cascade"):
            look(database.url)


def test_a_server_that_is_not_there_is_an_audit_error(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="cannot be used"):
        schema.check(f"postgresql://me@/audit?host={tmp_path}")


def test_a_file_that_is_no_database_is_an_audit_error(tmp_path: Path) -> None:
    path = tmp_path / "cascade.db"
    path.write_text("this is a text, long enough to be looked at as if it were a database file")
    with pytest.raises(AuditError, match="not a database"):
        schema.check(f"sqlite:///{path}")


def test_a_percent_sign_in_the_url_is_no_trouble(tmp_path: Path) -> None:
    assert schema.upgrade(f"sqlite:///{tmp_path}/per%cent.db").at_head
