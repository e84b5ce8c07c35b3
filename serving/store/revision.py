"""Says whether the audit database has the schema of this version.

Every command that reads the log asks this first, so it does without Alembic, which takes longer to
load than most questions to the log take.
"""

from dataclasses import dataclass
from importlib.resources import files

from sqlalchemy import Connection, inspect, text

from cascade.errors import ConfigError
from serving.store.database import engine_for, faults_of, shown, sqlite_file


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaState:
    """Where a database stands.

    Attributes:
        current: its revision; None when it has no tables yet.
        head: the revision this version of Cascade needs.
    """

    current: str | None
    head: str

    @property
    def at_head(self) -> bool:
        """Whether it can be used as it is."""
        return self.current == self.head


def check(url: str) -> SchemaState:
    """Where the database stands; nothing is created.

    Raises:
        ConfigError: the URL is wrong, or a newer Cascade made the database.
        AuditError: the database cannot be reached.
    """
    known = revisions()
    head = known[-1]
    if (path := sqlite_file(url)) is not None and not path.exists():
        return SchemaState(current=None, head=head)
    engine = engine_for(url)
    try:
        with faults_of(url), engine.connect() as connection:
            current = _current(connection)
    finally:
        engine.dispose()
    if current is not None and current not in known:
        raise newer(url, current)
    return SchemaState(current=current, head=head)


def require_head(url: str) -> None:
    """Refuse a database that is not at this version's schema.

    Raises:
        ConfigError: it is not, or the URL is wrong.
        AuditError: the database cannot be reached.
    """
    state = check(url)
    if not state.at_head:
        raise ConfigError(
            f"the audit database {shown(url)} is at {state.current or 'no'} revision, this version "
            f"needs {state.head}: run `cascade db upgrade`",
            param="audit.url",
        )


def revisions() -> list[str]:
    """Those that this version knows, the oldest first: what their files' names begin with."""
    names = [each.name for each in (files("migrations") / "versions").iterdir()]
    return sorted(name.split("_")[0] for name in names if name.endswith(".py"))


def newer(url: str, current: str | None) -> ConfigError:
    """What is said of a database of a revision that this version does not have."""
    return ConfigError(
        f"the audit database {shown(url)} is at revision {current}, which this version does not "
        "know: a newer Cascade made it, so run that one",
        param="audit.url",
    )


def _current(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)
