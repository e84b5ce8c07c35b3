from pathlib import Path

import pytest
from sqlalchemy import text

from cascade.errors import ConfigError
from serving.store import revision, schema
from serving.store.database import engine_for
from tests.databases import Database


def test_a_database_of_a_newer_version_is_left_alone(database: Database) -> None:
    engine = engine_for(database.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    for look in (revision.check, schema.upgrade):
        with pytest.raises(ConfigError, match=r"9999.*newer Cascade"):
            look(database.url)


def test_a_percent_sign_in_the_url_is_no_trouble(tmp_path: Path) -> None:
    assert schema.upgrade(f"sqlite:///{tmp_path}/per%cent.db").at_head
