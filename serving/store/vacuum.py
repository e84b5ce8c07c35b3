"""Writes an audit log's tables anew, so that what was removed is in none of the database's files.

What a database deletes it only marks as free. SQLite is told to overwrite it and PostgreSQL cannot
be: there the bytes stay where they are, also after a plain VACUUM, until a table is rewritten.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import OperationalError

from cascade.errors import AuditError
from serving.store.removal import empty_journal
from serving.store.tables import attempts, call_sums, feedback, request_sums, requests

TABLES: Final[Sequence[Table]] = (requests, attempts, feedback, request_sums, call_sums)
"""Those with anything of a request in them."""


def vacuum(engine: Engine, done: Callable[[], None] = lambda: None) -> None:
    """Write them anew. Nobody can read or write a table meanwhile; a service spools.

    Takes as much free space as the tables take.

    Args:
        engine: from `engine_for`.
        done: called after each of `TABLES`.

    Raises:
        DBAPIError: the database is in use and stays so.
        AuditError: what was removed is still in a file, since somebody reads it, or since who asks
            may not rewrite a table.
    """
    if engine.name == "sqlite":
        _sqlite(engine)
        for _ in TABLES:
            done()
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("SET statement_timeout = 0")
        connection.exec_driver_sql("SET lock_timeout = 0")
        try:
            for table in TABLES:
                _postgresql(connection, table)
                done()
        finally:
            connection.invalidate()  # whoever gets it next is to have the usual limits


def _sqlite(engine: Engine) -> None:
    with contextlib.closing(engine.raw_connection()) as raw:
        try:
            raw.cursor().execute("VACUUM")
        except sqlite3.Error as error:
            raise OperationalError("VACUUM", None, error) from error
    if not empty_journal(engine):
        raise AuditError(
            "somebody reads the audit database, whose journal keeps what was removed meanwhile: "
            "try again"
        )


def _postgresql(connection: Connection, table: Table) -> None:
    """A table that one may not rewrite is no error there: it is left out with a warning."""
    warnings: list[str] = []
    driver: Any = connection.connection.driver_connection

    def told(notice: Any) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.message_primary)

    driver.add_notice_handler(told)
    connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table.name}")
    driver.remove_notice_handler(told)
    if warnings:
        raise AuditError(f"the table {table.name} is not written anew: {warnings[0]}")
