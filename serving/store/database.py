"""From a URL to an engine that behaves: SQLite as a file in WAL mode, or PostgreSQL by psycopg 3.

Nothing here waits for long. A database that is down is found out in seconds, so that the sink can
go on spooling and the command line can say so.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from cascade.errors import AuditError, ConfigError

WRITES: dict[str, Any] = {"cascade_writes": True}
"""Execution options of a transaction that writes; SQLite then takes its write lock at once."""

WAIT_SECONDS = 5.0
"""How long who asks waits for a connection while all are in use."""

RETRY_SECONDS = 5.0
"""After which what a database could not do is worth another try."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": 5.0},  # seconds to wait for another process's write
    "postgresql": {
        "application_name": "cascade",
        "connect_timeout": "5",
        # A peer that vanished without a word is noticed in some twenty seconds instead of hours.
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "2",
        "tcp_user_timeout": "20000",
        "options": "-c statement_timeout=30s -c lock_timeout=10s"
        " -c idle_in_transaction_session_timeout=60s",
    },
}
_NOT_THERE = {"42P01", "42703", "3F000"}  # PostgreSQL: undefined table, column, schema


def parse(url: str) -> URL:
    """Read an audit URL; postgres:// and postgresql:// come to mean psycopg 3.

    Raises:
        ConfigError: it is no URL, or names a database that is not supported.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            "audit.url is not a database URL; write sqlite:///FILE or postgresql://USER@HOST/NAME",
            param="audit.url",
        ) from error
    if parsed.drivername in {"postgres", "postgresql"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in {"sqlite", "sqlite+pysqlite", "postgresql+psycopg"}:
        raise ConfigError(
            f"audit.url starts with {parsed.drivername}://, which is not supported; "
            "use sqlite:/// or postgresql://",
            param="audit.url",
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database in {None, "", ":memory:"}:
        raise ConfigError(
            "audit.url names no file, and an audit log in memory is lost at the end; "
            "write sqlite:///FILE",
            param="audit.url",
        )
    return parsed


def engine_for(url: str) -> Engine:
    """An engine for an audit URL; nothing is connected to yet.

    Raises:
        ConfigError: the URL is wrong or the driver is not installed.
    """
    parsed = parse(url)
    sqlite = parsed.get_backend_name() == "sqlite"
    try:
        engine = create_engine(
            parsed,
            connect_args=_defaults(parsed),
            pool_pre_ping=not sqlite,
            pool_timeout=WAIT_SECONDS,
            hide_parameters=True,  # rows do not belong in error messages
            json_serializer=lambda value: orjson.dumps(value).decode(),
            json_deserializer=orjson.loads,
        )
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs a driver ({error}): pip install 'cascade-router[postgres]'",
            param="audit.url",
        ) from error
    if sqlite:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextlib.contextmanager
def faults_of(url: str) -> Iterator[None]:
    """Turn a database's failure into an error that says which database and what to do.

    Raises:
        AuditError: the database did not do what was asked.
    """
    try:
        yield
    except DBAPIError as error:
        lacking = lacks_tables(error)
        advice = "Run `cascade db upgrade`." if lacking else "Is audit.url right?"
        raise AuditError(
            f"the audit database {shown(url)} cannot be used: {brief(error)}. {advice}",
            param="audit.url",
            retry_after=None if lacking else RETRY_SECONDS,
        ) from error
    except NoConnectionError as error:
        raise AuditError(
            f"all connections to the audit database {shown(url)} are in use: too much is asked of "
            "it at once",
            retry_after=RETRY_SECONDS,
        ) from error


def lacks_tables(error: DBAPIError) -> bool:
    """Whether the database is well and only not at this version's schema."""
    state = getattr(error.orig, "sqlstate", None)
    said = str(error.orig)
    return (
        state in _NOT_THERE
        or said.startswith(("no such table", "no such column"))
        or ("has no column named" in said)
    )


def shown(url: str) -> str:
    """The URL without its password."""
    return parse(url).render_as_string(hide_password=True)


def brief(error: DBAPIError) -> str:
    """The driver's own words on one line, without the statement and the values of the row."""
    return " ".join(str(error.orig).partition("DETAIL:")[0].split())


def sqlite_file(url: str) -> Path | None:
    """The file behind a SQLite URL; None for PostgreSQL."""
    parsed = parse(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database is None:
        return None
    return Path(parsed.database)


def _defaults(url: URL) -> dict[str, Any]:
    """What the URL's own query leaves open."""
    defaults = _DEFAULTS[url.get_backend_name()]
    return {name: value for name, value in defaults.items() if name not in url.query}


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver's own BEGIN comes late and not before DDL; with None it leaves that to us.
    connection.isolation_level = None
    # NORMAL is safe against a killed process; only a power cut may take the last transactions.
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later can fail at once in WAL mode, however long
    # the busy timeout is; one that takes the write lock at its beginning waits its turn.
    writes = connection.get_execution_options().get("cascade_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
