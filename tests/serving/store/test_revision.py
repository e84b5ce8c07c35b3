import subprocess
import sys
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from cascade.errors import AuditError, ConfigError
from serving.store import revision, schema
from tests.databases import Database


def test_the_files_of_the_migrations_are_named_in_their_order() -> None:
    scripts = ScriptDirectory.from_config(schema.configuration())
    assert revision.revisions() == [s.revision for s in scripts.walk_revisions()][::-1]


def test_asking_for_the_revision_does_not_load_alembic() -> None:
    program = "import sys, serving.commands.log; print('alembic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"False"]


def test_a_file_that_is_not_there_is_not_created_by_looking(tmp_path: Path) -> None:
    path = tmp_path / "cascade.db"
    assert revision.check(f"sqlite:///{path}").current is None
    assert not path.exists()


def test_a_database_at_head_passes(database: Database) -> None:
    assert revision.check(database.url).at_head
    revision.require_head(database.url)


def test_a_database_that_is_not_at_head_says_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run `cascade db upgrade`"):
        revision.require_head(f"sqlite:///{tmp_path}/cascade.db")


def test_a_server_that_is_not_there_is_an_audit_error(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="cannot be used"):
        revision.check(f"postgresql://me@/audit?host={tmp_path}")


def test_a_file_that_is_no_database_is_an_audit_error(tmp_path: Path) -> None:
    path = tmp_path / "cascade.db"
    path.write_text("this is a text, long enough to be looked at as if it were a database file")
    with pytest.raises(AuditError, match="not a database"):
        revision.check(f"sqlite:///{path}")
