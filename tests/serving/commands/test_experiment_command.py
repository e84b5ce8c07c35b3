import http.server
import json
import re
import threading
from typing import ClassVar

import pytest
from click.testing import CliRunner
from sqlalchemy import insert

from serving.admin.access import KEY
from serving.cli import cascade
from serving.overrides import store
from serving.store import schema
from serving.store.database import engine_for
from serving.store.tables import overrides
from tests.overriding import overridden
from tests.serving.test_config import GOOD


@pytest.fixture
def database(tmp_path, monkeypatch):
    """A migrated database beside a configuration, whose experiment has the arms a and b."""
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    monkeypatch.delenv(KEY, raising=False)
    (tmp_path / "cascade.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/cascade.db"
    schema.upgrade(url)
    engine = engine_for(url)
    yield engine
    engine.dispose()


def run(*arguments):
    """Exit status, standard output, and the message of a CascadeError."""
    done = CliRunner().invoke(cascade, arguments)
    return done.exit_code, done.output, getattr(done.exception, "message", "")


def do(*arguments):
    status, output, fault = run(*arguments, "--why", "a test", "--who", "ann")
    assert status == 0, (output, fault)
    return output


def listed():
    return json.loads(run("experiment", "list", "--json")[1])


def test_list_shows_what_the_file_says_and_what_holds(database):
    do("experiment", "set", "auto", "--weight", "a=3", "--ramp", "0.5")
    found = listed()
    each = found["experiments"][0]
    assert (each["name"], each["ramp"], each["weights"]) == ("auto", 0.5, {"a": 3, "b": 1})
    assert each["file"]["weights"] == {"a": 1, "b": 1}
    assert [arm["policy"] for arm in each["arms"]] == ["cascade", "always-large"]
    assert [arm["estimator"] for arm in each["arms"]] == ["looks", None]
    output = run("experiment", "list")[1]
    assert "a 3, b 1" in output
    assert re.search(r"experiment auto is overridden: .*\(ann, .*: a test\)", output)


def test_stop_is_for_a_while_or_until_it_is_let_in_again(database):
    do("experiment", "set", "auto", "--ramp", "0.5")
    do("experiment", "stop", "auto", "--for", "30m")
    assert listed()["experiments"][0]["status"] == "off"
    override = store.state(database)["experiment:auto"]
    assert 1799 < override.until - override.created_at < 1801
    do("experiment", "set", "auto", "--enable")
    each = listed()["experiments"][0]
    assert (each["status"], each["ramp"]) == ("running", 0.5)


def test_show_tells_the_history_and_reset_ends_it(database):
    do("experiment", "set", "auto", "--end", "2090-01-01T00:00:00+09:00")
    do("experiment", "set", "auto", "--reset")
    status, output, _ = run("experiment", "show", "auto")
    assert status == 0
    assert "as in the file" in output
    found = json.loads(run("experiment", "show", "auto", "--json")[1])
    assert found["override"] is None
    ended, began = found["history"]
    assert ended["value"] is None
    assert began["value"] == {"end": "2090-01-01T00:00:00+09:00"}


def test_a_time_beyond_all_dates_is_shown(database):
    pinned = {"subject": "pin", "value": {"tier": "large"}, "until": 1e13}
    with database.begin() as connection:
        connection.execute(
            insert(overrides).values({**pinned, "who": "ben", "why": "w", "created_at": 1.0})
        )
    do("experiment", "set", "auto", "--end", "9999-12-31T23:59:59-23:59")
    output = run("experiment", "list")[1]
    assert "pinned to large until 9999-12-31 23:59:59 UTC" in output
    assert listed()["experiments"][0]["end"] == "9999-12-31T23:59:59+00:00"


def test_of_an_override_that_the_file_outgrew_the_rest_is_shown_in_force(database):
    value = {"enabled": False, "weights": {"gone": 1}}
    store.put(database, "experiment:auto", value, who="ben", why="w")
    assert listed()["experiments"][0]["status"] == "off"
    output = run("experiment", "show", "auto")[1]
    assert "this is not in force: weights.gone: there is no arm 'gone'" in output


def test_pin_and_drain_are_said_and_ended(database):
    assert run("pin")[1].strip() == "nothing is pinned"
    assert run("drain")[1].strip() == "no tier is drained"
    do("pin", "large", "--for", "2h")
    assert "everything is pinned to large until" in run("pin")[1]
    do("drain", "small")
    assert "small is drained (ann" in run("drain")[1]
    assert "everything is pinned to large" in run("experiment", "list")[1]
    assert "everything is pinned to large" in run("config", "show")[1]
    do("pin", "--off")
    do("drain", "small", "--off")
    assert store.state(database) == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["experiment", "set", "auto", "--ramp", "0.5"], "--why: a change needs a reason"),
        (["experiment", "set", "auto", "--why", "w"], "say what to change"),
        (["experiment", "set", "auto", "--why", "w", "--reset", "--ramp", "1"], "not both"),
        (["experiment", "set", "gone", "--why", "w", "--ramp", "1"], "no experiment 'gone'"),
        (["experiment", "set", "auto", "--why", "w", "--weight", "c=1"], "no arm 'c'"),
        (["experiment", "set", "auto", "--why", "w", "--weight", "a=-1"], "from 0 on"),
        (["experiment", "set", "auto", "--why", "w", "--ramp", "1", "--expect", "7"], "version 0"),
        (["experiment", "show", "gone"], "no experiment 'gone'; there are: auto"),
        (["pin", "gone", "--why", "w"], "no tier 'gone'"),
        (["pin", "large", "--for", "31d", "--why", "w"], "--for: more than 0 and at most 30d"),
        (["pin", "large", "--for", f"{9 * 10**400}d", "--why", "w"], "--for: "),
        (["experiment", "stop", "auto", "--for", "0s", "--why", "w"], "--for: "),
        (["pin", "large", "--off", "--why", "w"], "--off takes neither"),
        (["pin", "--off", "--why", "w"], "nothing is pinned"),
        (["drain", "--off", "--why", "w"], "--off takes a tier"),
        (["drain", "large", "--why", "w", "--url", "ftp://x"], "does not begin with http"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_changes_nothing(database, arguments, said):
    status, _, fault = run(*arguments)
    assert status == 1
    assert said in fault
    assert store.latest(database) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["experiment", "set", "auto", "--weight", "a"],
        ["experiment", "set", "auto", "--weight", "a=much"],
        ["experiment", "set", "auto", "--weight", "=1"],
        ["experiment", "set", "auto", "--weight", "a=nan"],
        ["experiment", "set", "auto", "--weight", "a=inf"],
        ["experiment", "set", "auto", "--ramp", "nan"],
        ["experiment", "set", "auto", "--start", "soon"],
        ["experiment", "set", "auto", "--ramp", "2"],
        ["pin", "large", "--for", "30"],
        ["pin", "large", "--for", "soon"],
    ],
)
def test_an_option_that_cannot_be_read_is_a_usage_error(database, arguments):
    assert run(*arguments, "--why", "w")[0] == 2
    assert store.latest(database) == 0


def test_before_the_database_is_there_it_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    (tmp_path / "cascade.yaml").write_text(GOOD)
    status, _, fault = run("experiment", "list", "--config", str(tmp_path / "cascade.yaml"))
    assert status == 1
    assert "cascade db upgrade" in fault


async def through(url, *arguments):
    """The command in a thread, so that the service in this loop can answer it."""
    import asyncio

    return await asyncio.to_thread(run, *arguments, "--url", url)


async def test_through_a_service_it_is_the_same(database, tmp_path):
    why = ["--why", "a test", "--who", "Ånn 안나"]
    async with overridden(f"sqlite:///{tmp_path}/cascade.db") as worker:
        status, output, fault = await through(
            worker.url, "experiment", "set", "auto", "--weight", "cascade=0", "--json", *why
        )
        assert status == 0, fault
        version = json.loads(output)["version"]
        trial = worker.watcher.current.experiments["auto"]
        assert (trial.arms[0].weight, trial.arms[0].version) == (0, version)
        await through(worker.url + "/v1", "pin", "large", "--for", "1h", *why)
        await through(worker.url, "drain", "small", *why)
        assert worker.watcher.report()["pin"] == "large"
        assert worker.watcher.report()["drained"] == ["small"]
        output = (await through(worker.url, "experiment", "list"))[1]
        assert "Ånn 안나" in output
        await through(worker.url, "pin", "--off", *why)
        await through(worker.url, "drain", "small", "--off", *why)
        await through(worker.url, "experiment", "set", "auto", "--reset", *why)
        assert worker.watcher.state == {}
        status, _, fault = await through(worker.url, "pin", "gone", *why)
        assert (status, "no tier 'gone'" in fault) == (1, True)


async def test_through_a_service_the_key_of_the_environment_is_sent(
    database, tmp_path, monkeypatch
):
    async with overridden(f"sqlite:///{tmp_path}/cascade.db") as worker:
        for key in ("sesame", "sésame", "열려라 참깨", "sesame\n"):
            monkeypatch.setenv(KEY, key)  # of both, being one process
            status, _, fault = await through(worker.url, "experiment", "list")
            assert status == 0, fault


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """Points to another place, which remembers what it was sent."""

    asked: ClassVar[list[str | None]] = []

    def do_GET(self):
        self.asked.append(self.headers.get("authorization"))
        self.send_response(302)
        self.send_header("location", f"http://localhost:{self.server.server_port}/other")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_the_key_does_not_follow_a_redirect(database, monkeypatch):
    monkeypatch.setenv(KEY, "sesame")
    Elsewhere.asked.clear()
    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        status, _, fault = run("experiment", "list", "--url", url)
        server.shutdown()
    assert (status, Elsewhere.asked) == (1, ["Bearer sesame"])
    assert re.search(r"answered 302 and points to http://localhost:\d+/other: give that", fault)


def test_a_service_that_is_not_there_is_said(database):
    status, _, fault = run("experiment", "list", "--url", "http://127.0.0.1:9")
    assert status == 1
    assert "no Cascade that can be reached" in fault
