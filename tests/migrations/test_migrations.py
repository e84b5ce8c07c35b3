import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import inspect, text

from serving.store import queries, revision, schema
from serving.store.adding import catch_up
from serving.store.database import WRITES, engine_for
from serving.store.stats import stats
from serving.store.tables import metadata
from tests.databases import Database


def tables(url: str) -> set[str]:
    engine = engine_for(url)
    with engine.connect() as connection:
        names = set(inspect(connection).get_table_names())
    engine.dispose()
    return names


def migrate(url: str, to: str, *, down: bool = False) -> None:
    """Up or down to a revision, as a developer would."""
    engine = engine_for(url)
    step = command.downgrade if down else command.upgrade
    with engine.execution_options(**WRITES).begin() as connection:
        step(schema.configuration(connection), to)
    engine.dispose()


def test_the_migrated_schema_is_what_the_tables_say(database: Database) -> None:
    engine = engine_for(database.url)
    with engine.connect() as connection:
        config = schema.configuration(connection)
        config.stdout = io.StringIO()
        command.check(config)
    engine.dispose()


def test_alembic_check_notices_a_missing_index(database: Database) -> None:
    engine = engine_for(database.url)
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_requests_created_at"))
    with engine.connect() as connection:
        config = schema.configuration(connection)
        config.stdout = io.StringIO()
        with pytest.raises(Exception, match="ix_requests_created_at"):
            command.check(config)
    engine.dispose()


def test_constraints_have_the_names_the_metadata_gives_them(database: Database) -> None:
    engine = engine_for(database.url)
    with engine.connect() as connection:
        found = inspect(connection)
        for table in metadata.sorted_tables:
            assert found.get_pk_constraint(table.name)["name"] == f"pk_{table.name}"
            names = {index["name"] for index in found.get_indexes(table.name)}
            assert names == {index.name for index in table.indexes}
        foreign = found.get_foreign_keys("attempts")
        assert [key["name"] for key in foreign] == ["fk_attempts_request_id_requests"]
    engine.dispose()


def test_an_upgrade_creates_the_tables_and_a_second_one_changes_nothing(
    empty_database: Database,
) -> None:
    assert revision.check(empty_database.url).current is None
    assert schema.upgrade(empty_database.url).at_head
    first = tables(empty_database.url)
    assert schema.upgrade(empty_database.url).at_head
    assert tables(empty_database.url) == first == {*metadata.tables, "alembic_version"}


def test_down_to_nothing_and_up_again(database: Database) -> None:
    migrate(database.url, "base", down=True)
    assert tables(database.url) == {"alembic_version"}
    migrate(database.url, "head")
    assert revision.check(database.url).at_head


def test_a_migration_that_fails_leaves_nothing_behind(empty_database: Database) -> None:
    schema.upgrade(empty_database.url)
    migrate(empty_database.url, "base", down=True)
    engine = engine_for(empty_database.url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE attempts (id INTEGER)"))  # in the migration's way
    engine.dispose()
    with pytest.raises(Exception, match="already exists"):
        schema.upgrade(empty_database.url)
    assert tables(empty_database.url) == {"alembic_version", "attempts"}


OLD_ROWS = """
INSERT INTO requests (id, created_at, status, requested_model, policy, config_version, tenant,
    session, unit, tags, prompt_hash, prompt_messages, reason, answers, belief_flags, cost_pico,
    duration_ms, overhead_ms, released_characters)
VALUES ('old', 100.5, 'ok', 'auto', 'default', 'c0ffee', 'default', 's', '', '{}', 'abc', 1,
    'small is not judged', 1, '[]', 1720000, 210.0, 3.0, 2);
INSERT INTO attempts (request_id, "index", kind, tier, outcome, reason, partial, cost_pico,
    started_ms, duration_ms)
VALUES ('old', 0, 'answer', 'small', 'accepted', 'the first step', false, 1720000, 2.0, 200.0)
"""


def test_rows_of_the_first_revision_are_read_after_an_upgrade_and_survive_the_way_back(
    empty_database: Database,
) -> None:
    url = empty_database.url
    migrate(url, "0001")
    engine = engine_for(url)
    with engine.begin() as connection:
        for statement in OLD_ROWS.split(";"):
            connection.exec_driver_sql(statement)
    assert schema.upgrade(url).at_head
    old = queries.show(engine, "old")
    assert (old.cost_pico, old.baseline_pico, old.idempotency_hash) == (1720000, None, None)
    assert [(call.usage_estimated, call.tries) for call in old.attempts] == [(False, None)]
    assert queries.feedback_on(engine, [old]) == {}
    migrate(url, "0001", down=True)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT id, cost_pico FROM requests")).all() == [
            ("old", 1720000)
        ]
        assert connection.scalar(text("SELECT count(*) FROM attempts")) == 1
    assert schema.upgrade(url).at_head
    assert queries.show(engine, "old") == old
    engine.dispose()


def test_rows_that_are_older_than_the_sums_wait_to_be_added_up(empty_database: Database) -> None:
    url = empty_database.url
    migrate(url, "0005")
    engine = engine_for(url)
    with engine.begin() as connection:
        for statement in OLD_ROWS.split(";"):
            connection.exec_driver_sql(statement)
    assert schema.upgrade(url).at_head
    old = queries.show(engine, "old")
    assert (old.key_id, old.difficulty, old.prompt_form, old.prices_version) == (None,) * 4
    assert (stats(engine).requests, stats(engine).uncounted) == (0, 1)
    assert (catch_up(engine), catch_up(engine)) == (1, 0)
    assert (stats(engine).requests, stats(engine).uncounted) == (1, 0)
    migrate(url, "0005", down=True)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM attempts")) == 1
    engine.dispose()


def test_several_threads_may_upgrade_at_once(empty_database: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(schema.upgrade, [empty_database.url] * 4))
    assert all(state.at_head for state in states)


def test_several_processes_may_upgrade_at_once(empty_database: Database) -> None:
    program = "import sys; from serving.store.schema import upgrade; upgrade(sys.argv[1])"
    children = [
        subprocess.Popen([sys.executable, "-c", program, empty_database.url]) for _ in range(3)
    ]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    assert revision.check(empty_database.url).at_head


def test_a_developer_can_generate_a_revision(tmp_path: Path, empty_database: Database) -> None:
    schema.upgrade(empty_database.url)
    ini = tmp_path / "alembic.ini"
    ini.write_text(f"[alembic]\nscript_location = migrations\nversion_locations = {tmp_path}\n")
    for path in Path("migrations/versions").glob("0*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    alembic = [sys.executable, "-m", "alembic", "-c", ini, "-x", f"url={empty_database.url}"]
    asked = ["revision", "--autogenerate", "-m", "nothing", "--rev-id", "next"]
    done = subprocess.run([*alembic, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "next_nothing.py").read_text()
    assert "down_revision = '0007'" in written
    assert "op." not in written


def test_alembic_asks_which_database_when_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    ini = tmp_path / "alembic.ini"
    ini.write_text("[alembic]\nscript_location = migrations\n")
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(ini), "current"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "CASCADE_AUDIT_URL" in done.stderr
