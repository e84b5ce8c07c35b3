"""Databases for overrides, on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from serving.store.database import engine_for
from tests.databases import Database, database, postgres, template

__all__ = ["database", "postgres", "template"]


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    made = engine_for(database.url)
    yield made
    made.dispose()
