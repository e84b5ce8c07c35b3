"""How Alembic reaches the audit database.

The service passes an open connection (`serving.store.schema`). A developer who writes a revision
names the database: `alembic -x url=sqlite:///FILE revision --autogenerate -m TEXT`, or by
CASCADE_AUDIT_URL.
"""

import os

from alembic import context
from sqlalchemy import Connection

from serving.store.database import WRITES, engine_for
from serving.store.tables import metadata


def run(connection: Connection) -> None:
    """Migrate in the connection's transaction: all of it or nothing, on SQLite too."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_server_default=True,
    )
    context.run_migrations()


def run_by_hand() -> None:
    """Migrate the database that the developer named."""
    url = context.get_x_argument(as_dictionary=True).get("url", os.environ.get("CASCADE_AUDIT_URL"))
    if not url:
        raise SystemExit("Which database? Say alembic -x url=sqlite:///FILE, or CASCADE_AUDIT_URL.")
    engine = engine_for(url)
    with engine.execution_options(**WRITES).begin() as connection:
        run(connection)
    engine.dispose()


given = context.config.attributes.get("connection")
if given is None:
    run_by_hand()
else:
    run(given)
