import json
import re
import time
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from cascade.audit import record
from serving.cli import cascade
from serving.schemas import parse
from serving.store import schema
from serving.store.chain import Chain
from serving.store.database import engine_for
from serving.store.keys import audit_keys, new_key
from serving.store.prompts import prompts
from serving.store.rows import encode
from serving.store.sink import SqlAuditSink
from serving.store.spool import Spool
from tests.builders import escalated, request
from tests.serving.test_config import GOOD

KEY = new_key()


def run(*arguments, given=None):
    """Exit status, standard output, and the message of a CascadeError."""
    done = CliRunner().invoke(cascade, arguments, input=given)
    return done.exit_code, done.stdout, getattr(done.exception, "message", "")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    monkeypatch.setenv("CASCADE_AUDIT_KEY", KEY)
    path = tmp_path / "cascade.yaml"
    path.write_text(GOOD)
    return path


@pytest.fixture
def log(file, tmp_path):
    """Four requests, one a day, the first of which began four days ago; two tenants, two users."""
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    keys = audit_keys({"CASCADE_AUDIT_KEY": KEY})
    kept = {"prompts": prompts("full", keys), "chain": Chain(keys)}
    sink = SqlAuditSink(engine, tmp_path / "spill", **kept)
    sink.start()
    for n in range(4):
        asked = request(id=f"r{n}", tenant="ab"[n % 2], user=["kim", ""][n // 2], key_id="c0ffee")
        sink.write(escalated(request=asked, started_at=time.time() - (4 - n) * 86_400 + 60))
    assert sink.flush(10)
    sink.close(5)
    yield engine
    engine.dispose()


def audit(file, *arguments, **options):
    return run("audit", *arguments, "--config", str(file), **options)


def ids(file):
    lines = audit(file, "tail", "--json")[1].splitlines()
    return [json.loads(line)["id"] for line in lines if line.startswith("{")]


def test_help_lists_what_there_is():
    output = run("audit", "--help")[1]
    for name in ("tail", "show", "stats", "export", "prune", "delete", "verify", "key"):
        assert re.search(rf"^  {name} ", output, re.MULTILINE)
        assert run("audit", name, "--help")[0] == 0


def test_show_tells_whose_a_request_is_and_what_was_in_force(file, log):
    output = " ".join(audit(file, "show", "r0")[1].split())
    assert "tenant a, session s-1, user kim, key c0ffee" in output
    assert "kept full" in output
    assert "configuration c0ffee" in output
    assert "difficulty 0.59" in output


def test_show_prints_a_kept_prompt_to_who_has_the_key(file, log, monkeypatch):
    status, output, _ = audit(file, "show", "r0", "--prompt")
    assert status == 0
    assert json.loads(output)["prompt"]["messages"][0]["content"] == "What is 17 + 25?"
    monkeypatch.delenv("CASCADE_AUDIT_KEY")
    status, output, fault = audit(file, "show", "r0", "--prompt")
    assert (status, output) == (1, "")
    assert "needs a key: set CASCADE_AUDIT_KEY" in fault


def test_export_writes_a_folder_or_a_file(file, log, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    status, output, _ = audit(file, "export", "--since", "all", "--out", str(tmp_path / "out"))
    assert status == 0
    assert "4 requests" in output
    assert pq.read_table(tmp_path / "out" / "attempts.parquet").num_rows == 12
    one = tmp_path / "log.parquet"
    span = ("--since", "3d", "--until", "2d")
    assert "1 requests" in audit(file, "export", *span, "--out", str(one))[1]
    assert pq.read_table(one).column("id").to_pylist() == ["r1"]
    status, _, fault = audit(file, "export", *span, "--out", str(one))
    assert (status, "is there already" in fault) == (1, True)


def test_export_says_of_which_time_the_requests_are_also_for_machines(file, log, tmp_path):
    output = audit(file, "export", "--out", str(tmp_path / "day"))[1]
    assert re.search(r"1 requests since \d{4}-\d\d-\d\d", output)
    everything = ("--since", "all", "--out", str(tmp_path / "all"))
    told = json.loads(audit(file, "export", *everything, "--json")[1])
    assert (told["requests"], told["since"], told["until"]) == (4, None, None)
    assert len(told["files"]) == 3
    assert all(Path(name).stat().st_size == size for name, size in told["files"].items())


def test_what_is_removed_is_told_to_machines_too(file, log):
    dry = json.loads(audit(file, "prune", "--days", "2.5", "--dry-run", "--json")[1])
    assert dry == {"requests": 2, "spool_lines": 0, "spool_unreadable": 0}
    done = json.loads(audit(file, "delete", "--tenant", "a", "--yes", "--json")[1])
    assert done == {
        "requests": 2,
        "attempts": 6,
        "feedback": 0,
        "spool_lines": 0,
        "spool_unreadable": 0,
    }


def test_nobody_is_asked_about_nothing(file, log):
    status, output, _ = audit(file, "delete", "--user", "nobody")
    assert (status, output) == (0, "removed 0 requests, 0 attempts and 0 words of feedback\n")


def test_prune_removes_what_is_old_and_the_chain_stays_whole(file, log):
    assert audit(file, "prune", "--days", "2.5", "--dry-run")[1] == (
        "2 requests are older than 2.5 days\n"
    )
    assert len(ids(file)) == 4
    output = audit(file, "prune", "--days", "2.5")[1]
    assert "removed 2 requests, 6 attempts and 0 words of feedback" in output
    assert ids(file) == ["r2", "r3"]
    status, output, _ = audit(file, "verify")
    assert status == 0
    assert "2 rows in 1 chain" in output
    assert "2 rows were removed by right: retention" in output
    assert json.loads(audit(file, "stats", "--since", "all", "--json")[1])["requests"] == 4


def test_prune_takes_the_time_from_the_configuration_and_asks_for_one_without(file, log):
    status, _, _ = audit(file, "prune")
    assert status == 2
    file.write_text(f"{GOOD}\naudit: {{retention_days: 3.5}}\n")
    assert "removed 1 requests" in audit(file, "prune")[1]
    # In PostgreSQL every time is before one that is no number.
    assert audit(file, "prune", "--days", "nan", "--dry-run")[0] == 2


def test_delete_asks_first_and_removes_what_is_a_tenants_or_a_users(file, log):
    status, output, _ = audit(file, "delete", "--user", "kim", given="n\n")
    assert (status, "Remove 2 requests for good?" in output) == (1, True)
    assert len(ids(file)) == 4
    assert audit(file, "delete", "--user", "kim", "--tenant", "a", given="y\n")[0] == 0
    assert ids(file) == ["r1", "r2", "r3"]
    assert "removed 2 requests" in audit(file, "delete", "--tenant", "b", "--yes")[1]
    assert ids(file) == ["r2"]
    assert audit(file, "delete")[0] == 2
    assert audit(file, "verify")[0] == 0


def test_delete_says_what_would_go_and_takes_what_waits_or_was_set_aside_too(file, log):
    url, folder = f"sqlite:///{file.parent}/cascade.db", file.parent / "aside"
    file.write_text(f"{GOOD}\naudit: {{url: {url}, spill: aside}}\n")
    spool = Spool(folder)
    spool.open()
    waiting = [record(escalated(request=request(id=f"w{n}", user=f"kim{n}"))) for n in range(2)]
    spool.set_aside([*map(encode, waiting), b"\x00 no JSON"])
    status, output, _ = audit(file, "delete", "--user", "kim0", "--dry-run")
    assert (status, output) == (0, "0 requests and 1 lines of the spool would be removed\n")
    assert b'"w0"' in _content(folder)
    done = CliRunner().invoke(
        cascade, ["audit", "delete", "--user", "kim0", "--yes", "--vacuum", "--config", str(file)]
    )
    assert done.exit_code == 0
    assert "removed 0 requests" in done.stdout
    assert "and 1 lines of the spool" in done.stdout
    assert "1 lines in" in done.stderr
    assert "look at its .bad and .tmp files" in done.stderr
    left = _content(folder)
    assert b'"w0"' not in left
    assert b'"w1"' in left
    assert b"no JSON" in left
    assert len(ids(file)) == 4


def _content(folder):
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_delete_finds_names_that_are_too_long_to_be_kept(file, log):
    long = "kim@example.com " * 20
    headers = {"x-cascade-tenant": long}
    sink = SqlAuditSink(log, file.parent / "spill")
    sink.start()
    for name, whose in (("user", {}), ("tenant", headers)):
        body = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], "user": long}
        asked = parse(orjson.dumps(body), whose, name).request
        sink.write(escalated(request=asked, started_at=time.time()))
    sink.close(10)
    assert "removed 1 requests" in audit(file, "delete", "--tenant", long, "--yes")[1]
    assert "removed 1 requests" in audit(file, "delete", "--user", long, "--yes")[1]
    assert ids(file) == ["r0", "r1", "r2", "r3"]


def test_verify_names_the_first_broken_row_and_ends_with_one(file, log):
    with log.begin() as connection:
        connection.exec_driver_sql("UPDATE requests SET cost_pico = 1 WHERE id = 'r2'")
    status, output, _ = audit(file, "verify")
    assert status == 1
    assert re.search(r"row 3 of chain \w+ \(request r2\) was changed", output)
    fault = json.loads(audit(file, "verify", "--json")[1])["faults"][0]
    assert (fault["number"], fault["request_id"]) == (3, "r2")


@pytest.mark.parametrize(
    "command", [("verify",), ("prune", "--days", "1"), ("delete", "--tenant", "a", "--yes")]
)
def test_what_touches_a_chain_needs_the_key(file, log, monkeypatch, command):
    monkeypatch.delenv("CASCADE_AUDIT_KEY")
    status, _, fault = audit(file, *command)
    assert status == 1
    assert "CASCADE_AUDIT_KEY" in fault
    assert len(ids(file)) == 4


def test_a_key_is_one_that_the_variable_takes():
    text = run("audit", "key")[1].strip()
    assert audit_keys({"CASCADE_AUDIT_KEY": text}) is not None
    assert run("audit", "key")[1].strip() != text


def test_db_upgrade_adds_up_what_an_older_version_wrote(file, log, tmp_path):
    with log.begin() as connection:
        for table in ("request_sums", "call_sums", "judge_sums", "time_sums"):
            connection.exec_driver_sql(f"DELETE FROM {table}")  # noqa: S608
        connection.exec_driver_sql("INSERT INTO uncounted SELECT id FROM requests")
    output = audit(file, "stats", "--since", "all")[1]
    assert "4 requests of an older version are not in these numbers yet" in " ".join(output.split())
    assert run("db", "upgrade", "--config", str(file))[0] == 0
    assert json.loads(audit(file, "stats", "--since", "all", "--json")[1])["requests"] == 4
    assert Path(tmp_path / "cascade.db").exists()
