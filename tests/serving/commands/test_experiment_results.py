"""cascade experiment results, and cascade alerts."""

import json
import re
import time

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from serving.alerts.log import Finding, delivered, keep, latest
from serving.cli import cascade
from serving.overrides.store import change
from serving.store import schema
from serving.store.database import engine_for
from serving.store.tables import experiment_results
from tests.serving.results.log import asked, said, write

FILE = """
tiers:
  small: {backend: scripted, answers: [four], price: {input: 1, cache_read: 0.1, output: 2}}
policies:
  one: {type: fixed, tier: small}
  two: {type: fixed, tier: small}
experiments:
  auto: {arms: {control: {policy: one}, new: {policy: two}}}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    path = tmp_path / "cascade.yaml"
    path.write_text(FILE)
    schema.upgrade(f"sqlite:///{tmp_path}/cascade.db")
    return path


@pytest.fixture
def engine(file, tmp_path):
    made = engine_for(f"sqlite:///{tmp_path}/cascade.db")
    yield made
    made.dispose()


def run(*arguments, **options):
    done = CliRunner().invoke(cascade, arguments, **options)
    return done.exit_code, done.output, getattr(done.exception, "message", "")


def hour_of(engine, began, count=60):
    ids = [(f"{arm}{i}", arm) for arm in ("control", "new") for i in range(count)]
    write(
        engine,
        [asked(f"{began}{each}", arm, created_at=began, dollars=0.01) for each, arm in ids],
        words=[said(f"{began}{each}", 1.0) for each, _ in ids],
    )


def test_results_of_the_only_experiment_need_no_name(file, engine):
    hour_of(engine, time.time() - 3600)
    status, output, _ = run("experiment", "results", "--config", str(file))
    assert status == 0
    assert "new costs the same" in output
    status, named, _ = run("experiment", "results", "auto", "--config", str(file), "--fresh")
    assert named == output


def test_what_was_computed_lately_is_shown_with_its_age(file, engine):
    hour_of(engine, time.time() - 3600)

    def shown(*more):
        _, output, _ = run("experiment", "results", "--config", str(file), *more)
        return output

    assert "As of" not in shown()
    with engine.begin() as connection:  # as if it had taken seconds, half a minute ago
        at = time.time() - 30
        connection.execute(update(experiment_results).values(computed_at=at, took_seconds=2.0))
    hour_of(engine, time.time() - 1800)
    kept = json.loads(shown("--json"))
    assert (kept["as_of"], kept["took_seconds"]) == (at, 2.0)
    assert kept["arms"][0]["requests"] == 60
    assert re.search(r"As of \d{4}-\d\d-\d\d [\d:.]+ UTC, 3\d s ago; --fresh computes", shown())
    assert json.loads(shown("--json", "--since", "all"))["arms"][0]["requests"] == 120
    assert json.loads(shown("--json", "--fresh"))["arms"][0]["requests"] == 120
    assert json.loads(shown("--json"))["as_of"] > at


def test_what_was_computed_long_ago_is_computed_anew(file, engine):
    hour_of(engine, time.time() - 3600)
    run("experiment", "results", "--config", str(file))
    with engine.begin() as connection:
        connection.execute(update(experiment_results).values(computed_at=time.time() - 86_400))
    _, output, _ = run("experiment", "results", "--config", str(file))
    assert "As of" not in output


def test_results_of_weights_that_are_no_longer_in_force_are_not_shown(file, engine):
    hour_of(engine, time.time() - 3600)
    run("experiment", "results", "--config", str(file))
    with engine.begin() as connection:
        connection.execute(update(experiment_results).values(took_seconds=9.0))
    change(engine, "experiment:auto", {"weights": {"new": 3}}, who="me", why="more")
    time.sleep(0.01)
    assert run("experiment", "results", "--config", str(file))[1].startswith("No request")


def test_since_counts_from_another_time(file, engine):
    now = time.time()
    for hours in (50, 2):
        hour_of(engine, now - hours * 3600)

    def requests(*more):
        _, output, _ = run("experiment", "results", "--json", "--config", str(file), *more)
        return json.loads(output)["arms"][0]["requests"]

    assert requests() == 120
    assert requests("--since", "24h") == 60
    change(engine, "experiment:auto", {"weights": {"new": 3}}, who="me", why="more")
    time.sleep(0.01)
    assert run("experiment", "results", "--config", str(file))[1].startswith("No request")
    assert requests("--since", "all") == 120
    status, output, _ = run("experiment", "results", "--since", "soon", "--config", str(file))
    assert (status, "write 30m, 24h, 7d or all" in output) == (2, True)


def test_an_experiment_that_is_not_there_is_named(file):
    status, _, fault = run("experiment", "results", "other", "--config", str(file))
    assert status == 1
    assert fault == "there is no experiment 'other'; the configuration has: auto"


def test_alerts_are_listed_the_latest_first(file, engine):
    status, output, _ = run("alerts", "list", "--config", str(file))
    assert (status, output) == (0, "no alerts\n")
    for subject in ("one", "two"):
        keep(engine, Finding(kind="cost", subject=subject, message="dear", details={"now": 1}))
    delivered(engine, latest(engine)[1])
    _, output, _ = run("alerts", "list", "--config", str(file))
    assert output.index("two") < output.index("one")
    _, output, _ = run("alerts", "list", "--json", "-n", "1", "--config", str(file))
    (alert,) = json.loads(output)
    assert (alert["subject"], alert["details"], alert["delivered_at"]) == ("two", {"now": 1}, None)


def test_without_a_webhook_there_is_none_to_try(file):
    status, _, fault = run("alerts", "test", "--config", str(file))
    assert status == 1
    assert "state alerts.webhook" in fault


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (None, "ALERTS_TO is not set"),
        ("example", "ALERTS_TO holds no address"),
        ("http://127.0.0.1:1/secret", "the webhook failed: it cannot be reached"),
    ],
)
def test_what_is_wrong_with_a_webhook_is_said_without_its_address(
    file, monkeypatch, address, expected
):
    file.write_text(FILE + "alerts: {webhook_env: ALERTS_TO}\n")
    monkeypatch.delenv("ALERTS_TO", raising=False)
    if address:
        monkeypatch.setenv("ALERTS_TO", address)
    status, output, fault = run("alerts", "test", "--config", str(file))
    assert status == 1
    assert expected in fault
    assert "secret" not in output + fault


def test_the_configuration_is_checked_and_shown_without_the_secret(file, monkeypatch):
    monkeypatch.delenv("ALERTS_TO", raising=False)
    file.write_text(FILE + "alerts: {webhook_env: ALERTS_TO}\n")
    assert "ALERTS_TO is not set" in run("config", "check", "--config", str(file))[2]
    file.write_text(FILE + "alerts: {webhook: 'https://chat.example/secret'}\n")
    assert run("config", "check", "--config", str(file))[0] == 0
    _, output, _ = run("config", "show", "--config", str(file))
    assert '"webhook": "https://chat.example/..."' in output
    assert "secret" not in output
