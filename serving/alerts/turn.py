"""Lets one process at a time watch a database, so that nobody is told twice.

PostgreSQL has locks for it that end with their connection; beside a SQLite file lies another one
that is locked. Either way the lock of a killed process is free at once.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, text

_KEY: Final = 0x0CA5_CADE
"""Any number that nobody else of the database uses for such a lock."""


@contextmanager
def turn(engine: Engine) -> Iterator[bool]:
    """Whether it is this process's turn, until the context ends."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            locking = connection.execution_options(isolation_level="AUTOCOMMIT")
            key = {"key": _KEY}
            mine = locking.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar_one()
            try:
                yield bool(mine)
            finally:
                if mine:
                    locking.execute(text("SELECT pg_advisory_unlock(:key)"), key)
        return
    with Path(f"{engine.url.database}.watch").open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
