from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from serving.store.database import engine_for
from serving.store.sink import SqlAuditSink
from tests.databases import Database, database, postgres, template

__all__ = ["database", "postgres", "template"]

SinkFactory = Callable[..., SqlAuditSink]


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    made = engine_for(database.url)
    yield made
    made.dispose()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "cascade.spill"


@pytest.fixture
def open_sink(engine: Engine, spool: Path) -> Iterator[SinkFactory]:
    """Starts sinks on the database, and closes them at the end."""
    opened = []

    def start(**options: Any) -> SqlAuditSink:
        sink = SqlAuditSink(engine, spool, **options)
        sink.start()
        opened.append(sink)
        return sink

    yield start
    for sink in opened:
        sink.close(timeout=5)
