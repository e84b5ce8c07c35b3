"""Two real workers on one database: what is changed through one holds in both, and costs nobody."""

import json
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

from tests.databases import database, postgres, template  # noqa: F401  # fixtures
from tests.end_to_end.processes import CascadeProcess, wait_for
from tests.serving.test_config import GOOD

SESSIONS = [f"s{i}" for i in range(24)]
FOLLOWED_SECONDS = 2.0


@pytest.fixture
def workers(database, tmp_path):
    with ExitStack() as stack:
        started = []
        for name in ("one", "two"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "cascade.yaml").write_text(GOOD)
            process = CascadeProcess(
                folder / "cascade.yaml",
                CASCADE_HOME=str(folder / "home"),
                CASCADE_AUDIT_URL=database.url,
                CASCADE_ADMIN_KEY="",
            )
            stack.callback(process.stop)
            process.start()
            started.append(process)
        yield started


def arms(worker):
    """The arm that each session is in, as the answers say."""
    found = {}
    for session in SESSIONS:
        status, _, headers = worker.ask("auto", "hi", user=session)
        assert status == 200
        found[session] = headers.get("x-cascade-arm")
    return found


def put(worker, path, **body):
    request = urllib.request.Request(
        worker.url + path,
        data=json.dumps({"why": "a test", **body}).encode(),
        headers={"content-type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


@contextmanager
def traffic(workers):
    """Requests to each worker without a pause; the statuses of all of them at the end."""
    statuses, over = [], threading.Event()

    def ask(worker):
        while not over.is_set():
            statuses.append(worker.ask("auto", "hi", user="busy")[0])

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join()


def answered_by(worker):
    return worker.ask("always-large", "hi")[2]["x-cascade-policy"]


def test_a_toggle_through_one_is_followed_by_both_and_drops_no_request(workers):
    one, two = workers
    with traffic(workers) as statuses:
        assert set(arms(two).values()) == {"a", "b"}
        for pinned in ("small", "large", "small"):
            put(one, "/admin/pin", tier=pinned)
            since = time.monotonic()
            assert answered_by(one) == f"pin:{pinned}"
            wait_for(lambda name=f"pin:{pinned}": answered_by(two) == name, FOLLOWED_SECONDS)
            assert time.monotonic() - since < FOLLOWED_SECONDS
        before = len(statuses)
        wait_for(lambda: len(statuses) > before + 4, 30)
    assert set(statuses) == {200}
    assert one.said().count('"level":"ERROR"') == two.said().count('"level":"ERROR"') == 0


def test_an_experiment_changed_by_the_command_holds_in_both_until_it_is_put_back(workers):
    one = workers[0]
    before = arms(one)
    one.run("experiment", "set", "auto", "--weight", "a=0", "--why", "it fails")
    for worker in workers:
        wait_for(lambda worker=worker: set(arms(worker).values()) == {"b"}, FOLLOWED_SECONDS + 2)
    one.run("experiment", "set", "auto", "--reset", "--why", "mended")
    for worker in workers:
        wait_for(lambda worker=worker: arms(worker) == before, FOLLOWED_SECONDS + 2)


def test_a_session_is_in_the_same_arm_in_every_worker_and_after_a_restart(workers):
    one, two = workers
    put(one, "/admin/experiments/auto", ramp=0.5, weights={"b": 2})
    wait_for(lambda: arms(two) == arms(one), FOLLOWED_SECONDS + 2)
    before = arms(one)
    assert set(before.values()) == {"a", "b", None}
    one.stop()
    one.start()
    assert arms(one) == before == arms(two)
