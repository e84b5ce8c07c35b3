"""Brings the audit database to the schema of this version.

Several processes may start at once against one database: whoever comes first migrates, the others
wait for it and find nothing to do.
"""

import time
from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from serving.store.database import WRITES, engine_for, faults_of, sqlite_file
from serving.store.revision import SchemaState, check, newer

_LOCK = 0x63617363  # any number that no other program locks; this one spells "casc"
_PATIENCE_SECONDS = 60.0


def upgrade(url: str) -> SchemaState:
    """Create or migrate the tables; a database at head is left alone.

    Raises:
        ConfigError: the URL is wrong, or a newer Cascade made the database.
        AuditError: the database cannot be reached, or refuses.
    """
    if (path := sqlite_file(url)) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = engine_for(url)
    try:
        with faults_of(url):
            if path is not None:
                _switch_to_wal(engine)
            _migrate(engine, url)
    finally:
        engine.dispose()
    return check(url)


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration, which needs no file.

    Args:
        connection: what migrations run on, in a transaction that is already open.
    """
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _migrate(engine: Engine, url: str) -> None:
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":
            _take_turn(connection)
        try:
            command.upgrade(configuration(connection), "head")
        except CommandError as error:
            current = MigrationContext.configure(connection).get_current_revision()
            raise newer(url, current) from error


def _take_turn(connection: Connection) -> None:
    """Wait for other processes that migrate; then wait only shortly for each table.

    A migration that queues behind a long query makes every later query queue behind itself, so it
    gives up after seconds and can be tried again.
    """
    for setting in (
        "statement_timeout = 0",
        "idle_in_transaction_session_timeout = 0",
        f"lock_timeout = '{_PATIENCE_SECONDS:.0f}s'",
    ):
        connection.execute(text(f"SET LOCAL {setting}"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    connection.execute(text("SET LOCAL lock_timeout = '5s'"))


def _switch_to_wal(engine: Engine) -> None:
    """Make readers and the writer independent; the file remembers it.

    SQLite answers at once, without its busy timeout, when two processes try this together.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
        except engine.dialect.loaded_dbapi.OperationalError as error:
            if time.monotonic() > deadline:
                raise OperationalError("PRAGMA journal_mode = WAL", None, error) from error
            time.sleep(0.05)
        else:
            return
        finally:
            connection.close()
