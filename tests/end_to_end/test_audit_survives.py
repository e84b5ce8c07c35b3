"""The command over scripted tiers: what happens to the audit log when things stop or break."""

import signal

import pytest
from sqlalchemy import func, select

from serving.store.database import engine_for
from serving.store.tables import attempts, requests
from tests.databases import database, postgres, template  # noqa: F401  # fixtures
from tests.end_to_end.processes import CascadeProcess, wait_for
from tests.serving.test_config import GOOD


@pytest.fixture
def served(database, tmp_path):
    config = tmp_path / "cascade.yaml"
    config.write_text(GOOD)
    process = CascadeProcess(
        config, CASCADE_HOME=str(tmp_path / "home"), CASCADE_AUDIT_URL=database.url
    )
    process.start()
    yield process
    process.stop()


def ask(served, number):
    for i in range(number):
        status, _, _ = served.ask("cascade", f"question {i}")
        assert status == 200
    return number


def rows(database, table=requests):
    engine = engine_for(database.url)
    try:
        with engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()
    finally:
        engine.dispose()


def test_sigterm_loses_nothing(served, database):
    asked = ask(served, 25)
    served.stop()
    assert rows(database) == asked
    assert rows(database, attempts) == 2 * asked


def test_a_database_that_stops_and_starts_costs_no_row_and_no_request(served, database):
    asked = ask(served, 5)
    with database.outage():
        asked += ask(served, 20)
        wait_for(lambda: served.get("/readyz")[1]["status"] == "degraded", 20, served.said)
        assert served.get("/readyz")[0] == 200
        asked += ask(served, 5)
    asked += ask(served, 5)
    wait_for(lambda: rows(database) >= asked, 30, lambda: f"{rows(database)} of {asked}")
    assert rows(database) == asked
    wait_for(lambda: served.get("/readyz")[1]["status"] == "ready", 20, served.said)


def test_rows_of_a_killed_service_are_read_back_by_the_next(served, database):
    with database.outage():
        asked = ask(served, 10)
        # SIGKILL may take what is in memory, so all of it must have reached the spool.
        wait_for(lambda: served.get("/readyz")[1]["audit"]["spilled_rows"] == asked, 10)
        assert served.get("/readyz")[1]["audit"]["queued"] == 0
        served.stop(signal.SIGKILL)
    served.start()
    wait_for(lambda: rows(database) >= asked, 30, lambda: f"{rows(database)} of {asked}")
    assert rows(database) == asked


def test_it_starts_while_the_database_is_down(served, database):
    served.stop()
    before = rows(database)
    with database.outage():
        served.start()
        asked = ask(served, 3)
    wanted = before + asked
    wait_for(lambda: rows(database) >= wanted, 30, lambda: f"{rows(database)} of {wanted}")
    assert rows(database) == wanted
