import json
import re
import time

import pytest
from click.testing import CliRunner

from serving.cli import COMMANDS, cascade
from serving.store import schema
from serving.store.database import engine_for
from serving.store.sink import SqlAuditSink
from tests.builders import result
from tests.serving.test_config import GOOD


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    path = tmp_path / "cascade.yaml"
    path.write_text(GOOD)
    return path


def run(*arguments):
    """Exit status, standard output, and the message of a CascadeError."""
    done = CliRunner().invoke(cascade, arguments)
    fault = getattr(done.exception, "message", "")
    return done.exit_code, done.output, fault


@pytest.fixture
def stored(file, tmp_path):
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    sink = SqlAuditSink(engine, tmp_path / "spill")
    sink.start()
    results = [result(started_at=time.time() - 60 + i) for i in range(3)]
    for each in results:
        sink.write(each)
    assert sink.flush(5)
    sink.close(5)
    engine.dispose()
    return results


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name):
    status, output, _ = run(name, "--help")
    assert status == 0
    assert "Usage" in output


def test_config_check_says_what_can_be_asked_for(file):
    status, output, _ = run("config", "check", "--config", str(file))
    assert status == 0
    assert "can work" in output
    assert "always-large" in output
    status, output, _ = run("config", "check", "--json", "--config", str(file))
    assert json.loads(output)["ok"] is True


def test_config_check_shows_what_each_tier_costs(file):
    priced = "{backend: scripted, price: {litellm: anthropic/claude-sonnet-4-6}}"
    file.write_text(
        GOOD.replace("tiers:\n", f"tiers:\n  api: {priced}\n  free: {{backend: scripted}}\n", 1)
    )
    output = run("config", "check", "--config", str(file))[1]
    assert re.search(
        r"price +api: input 3, cache_read 0\.3, .*cache_write 1h 6, output 15 ", output
    )
    assert "large: input 1, cache_read 0.1, cache_write 5m 1.25, output 2; above 200000" in output
    assert re.search(r"price +free: none, so what its calls cost is unknown", output)
    prices = json.loads(run("config", "check", "--json", "--config", str(file))[1])["prices"]
    assert prices["free"] is None
    assert [entry["above"] for entry in prices["large"]] == [0, 200_000]
    assert prices["api"][0]["cache_read"] == "0.3"


def test_config_check_names_the_line_at_fault(file):
    file.write_text(GOOD.replace("accept_at: 0.7", "accept_at: 7"))
    status, _, fault = run("config", "check", "--config", str(file))
    assert status == 1
    assert "cascade.yaml:22: policies.cascade.steps.0.accept_at" in fault


def test_config_show_leaves_the_password_out(file):
    file.write_text(GOOD + "audit: {url: 'postgresql://me:s3cret@127.0.0.1:9/x'}\n")
    done = CliRunner().invoke(cascade, ["config", "show", "--config", str(file)])
    assert done.exit_code == 0
    assert "s3cret" not in done.output
    assert "what is overridden is not known" in done.stderr
    assert json.loads(done.stdout)["server"]["port"] == 8080


def test_db_upgrade_makes_what_db_check_asks_for(file):
    status, _, fault = run("db", "check", "--config", str(file))
    assert status == 1
    assert "cascade db upgrade" in fault
    assert run("db", "upgrade", "--config", str(file))[0] == 0
    assert run("db", "check", "--config", str(file))[0] == 0


def test_audit_before_there_is_a_database_says_what_to_do(file):
    status, _, fault = run("audit", "tail", "--config", str(file))
    assert status == 1
    assert "cascade db upgrade" in fault


def test_audit_tail_prints_the_latest_last(file, stored):
    status, output, _ = run("audit", "tail", "-n", "2", "--json", "--config", str(file))
    assert status == 0
    ids = [json.loads(line)["id"] for line in output.splitlines()]
    assert ids == [each.request.id for each in stored[1:]]
    assert run("audit", "tail", "--config", str(file))[0] == 0


def test_audit_show_takes_the_beginning_of_an_id(file, stored):
    wanted = stored[0].request.id
    status, output, _ = run("audit", "show", wanted, "--json", "--config", str(file))
    assert status == 0
    assert json.loads(output)["id"] == wanted
    status, output, _ = run("audit", "show", wanted, "--config", str(file))
    assert wanted in output
    status, _, fault = run("audit", "show", "zzz", "--config", str(file))
    assert (status, "'zzz'" in fault) == (1, True)


def test_audit_stats_counts_and_takes_a_span(file, stored):
    for since in ("24h", "all", "5m"):
        status, output, _ = run("audit", "stats", "--since", since, "--json", "--config", str(file))
        assert status == 0
        assert json.loads(output)["requests"] == 3
    assert (
        json.loads(run("audit", "stats", "--since", "1s", "--json", "--config", str(file))[1])[
            "requests"
        ]
        == 0
    )
    assert run("audit", "stats", "--since", "soon", "--config", str(file))[0] == 2


def test_models_status_lists_what_can_be_fetched(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_HOME", str(tmp_path))
    status, output, _ = run("models", "status")
    assert status == 0
    assert "qwen2.5-coder-0.5b" in output
    report = json.loads(run("models", "status", "--json")[1])
    assert [entry["verified"] for entry in report["files"]] == [False, False]


def test_pulling_an_unknown_model_names_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_HOME", str(tmp_path))
    status, _, fault = run("models", "pull", "gpt-9")
    assert status == 1
    assert "qwen2.5-coder-0.5b" in fault
