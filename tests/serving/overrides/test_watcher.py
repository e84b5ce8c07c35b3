import asyncio
import logging
import threading
import time

import pytest

from cascade.engine import CascadeEngine
from cascade.errors import AuditError, RequestError
from serving.overrides import store
from serving.overrides.changes import Note
from serving.overrides.watcher import Watcher
from serving.store.database import engine_for
from tests.engines import MemorySink
from tests.services import snapshot

NOTE = Note(who="ann", why="a look")


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def watching(database):
    started = []

    async def start(clock=time.time, seconds=0.05):
        watcher = Watcher(
            CascadeEngine(snapshot(), MemorySink()),
            engine_for(database.url),
            seconds=seconds,
            clock=clock,
        )
        await watcher.start()
        started.append(watcher)
        return watcher

    yield start
    for watcher in started:
        await watcher.aclose()


def pinned(watcher):
    arm = watcher.current.arm("auto", "u")
    return arm.policy.name.removeprefix("pin:") if arm.version else None


async def until(condition, seconds=2.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_what_another_process_wrote_is_followed_within_two_seconds(watching, engine):
    watcher = await watching(seconds=0.5)
    store.put(engine, "pin", {"tier": "large"}, who="ben", why="a test")
    await until(lambda: pinned(watcher) == "large")
    store.put(engine, "pin", None, who="ben", why="done")
    await until(lambda: pinned(watcher) is None)


async def test_a_worker_that_starts_late_begins_under_the_overrides(watching, engine):
    store.put(engine, "pin", {"tier": "large"}, who="ben", why="a test")
    watcher = await watching(seconds=60)
    assert pinned(watcher) == "large"


async def test_a_change_is_in_force_here_when_it_returns(watching):
    watcher = await watching(seconds=60)
    version = await watcher.change(lambda to: to.pin("large", NOTE))
    assert pinned(watcher) == "large"
    assert watcher.state["pin"].version == version
    await watcher.change(lambda to: to.unpin(NOTE))
    assert pinned(watcher) is None


async def test_the_snapshot_is_left_alone_while_nothing_changes(watching, engine):
    watcher = await watching()
    store.put(engine, "drain:large", {}, who="ben", why="a test")
    await until(lambda: "drain:large" in watcher.state)
    before = watcher.current
    await asyncio.sleep(0.2)
    assert watcher.current is before


async def test_a_time_limit_ends_without_a_write_and_without_a_database(watching, database, engine):
    clock = Clock()
    watcher = await watching(clock)
    store.put(engine, "pin", {"tier": "large"}, who="b", why="w", until=clock.now + 600)
    await until(lambda: pinned(watcher) == "large")
    clock.now += 599
    await asyncio.sleep(0.2)
    assert pinned(watcher) == "large"
    clock.now += 1
    await until(lambda: pinned(watcher) is None)
    assert store.latest(engine) == 1


async def test_a_database_that_is_away_leaves_what_is_known_and_is_said_once(
    tmp_path, template, caplog
):
    path = tmp_path / "cascade.db"
    path.write_bytes(template.read_bytes())
    watcher = Watcher(
        CascadeEngine(snapshot(), MemorySink()), engine_for(f"sqlite:///{path}"), seconds=0.02
    )
    await watcher.start()
    await watcher.change(lambda to: to.pin("large", NOTE))
    with caplog.at_level(logging.INFO, "serving.overrides.watcher"):
        watcher.database.dispose()
        path.rename(tmp_path / "away.db")
        await until(lambda: not watcher.reachable)
        await asyncio.sleep(0.2)
        assert pinned(watcher) == "large"
        assert watcher.report()["status"] == "stale"
        with pytest.raises(AuditError, match="cannot be used"):
            await watcher.change(lambda to: to.unpin(NOTE))
        watcher.database.dispose()
        (tmp_path / "away.db").replace(path)
        await until(lambda: watcher.reachable)
    await watcher.aclose()
    said = [record.message for record in caplog.records]
    assert len([line for line in said if "database is away" in line]) == 1
    assert len([line for line in said if "is back" in line]) == 1


@pytest.mark.postgres
async def test_a_server_that_stops_and_comes_back_is_followed_again(postgres):
    with postgres.database(migrated=True) as database:
        watcher = Watcher(
            CascadeEngine(snapshot(), MemorySink()), engine_for(database.url), seconds=0.05
        )
        await watcher.start()
        await watcher.change(lambda to: to.pin("large", NOTE))
        with database.outage():
            await until(lambda: not watcher.reachable, 20)
            assert pinned(watcher) == "large"
        await until(lambda: watcher.reachable, 20)
        await watcher.change(lambda to: to.unpin(NOTE))
        assert pinned(watcher) is None
        await watcher.aclose()


class Asked(Watcher):
    """Its database answers when it is told to."""

    def __init__(self, *parts, **options):
        super().__init__(*parts, **options)
        self.answer = asyncio.get_running_loop().create_future()
        self._look = self.answer


@pytest.mark.parametrize("steps", range(6))
async def test_it_ends_also_when_the_database_answers_just_then(database, steps):
    watcher = Asked(CascadeEngine(snapshot(), MemorySink()), engine_for(database.url))
    task = asyncio.create_task(watcher.refresh())
    await asyncio.sleep(0)
    watcher.answer.set_result(None)
    for _ in range(steps):
        await asyncio.sleep(0)
    over = task.done()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() or over
    await watcher.aclose()


async def test_a_database_without_tables_says_what_to_run(tmp_path, caplog):
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    watcher = Watcher(CascadeEngine(snapshot(), MemorySink()), engine_for(url), seconds=60)
    await watcher.start()
    assert "run `cascade db upgrade`" in caplog.text
    with pytest.raises(AuditError, match="run `cascade db upgrade`"):
        await watcher.change(lambda to: to.pin("large", NOTE))
    await watcher.aclose()


class Confused(Watcher):
    """Finds what it cannot read, until it is let go."""

    confused = True

    def _read(self):
        if self.confused:
            raise ValueError("not JSON")
        super()._read()


async def test_what_cannot_be_read_does_not_end_the_watch(database, engine, caplog):
    watcher = Confused(
        CascadeEngine(snapshot(), MemorySink()), engine_for(database.url), seconds=0.02
    )
    await watcher.start()
    assert not watcher.reachable
    assert "ValueError: not JSON" in caplog.text
    store.put(engine, "pin", {"tier": "large"}, who="ben", why="a test")
    watcher.confused = False
    await until(lambda: pinned(watcher) == "large")
    await watcher.aclose()


class Hanging(Watcher):
    """Its database takes a question and never answers it, until it is let go."""

    def __init__(self, *parts, **options):
        super().__init__(*parts, **options)
        self.let_go = threading.Event()
        self.asked = 0

    def _read(self):
        self.asked += 1
        if self.asked > 1:
            self.let_go.wait(20)
        super()._read()


async def test_a_database_that_hangs_holds_up_no_time_limit_and_one_thread(database, engine):
    clock = Clock()
    store.put(engine, "pin", {"tier": "large"}, who="b", why="w", until=clock.now + 600)
    watcher = Hanging(
        CascadeEngine(snapshot(), MemorySink()), engine_for(database.url), seconds=0.02, clock=clock
    )
    await watcher.start()
    await until(lambda: watcher.asked > 1)
    assert pinned(watcher) == "large"
    clock.now += 600
    await until(lambda: pinned(watcher) is None)
    assert watcher.asked == 2
    watcher.let_go.set()
    await watcher.aclose()


async def test_without_a_database_it_starts_and_serves_the_file(tmp_path):
    url = f"sqlite:///{tmp_path / 'none' / 'cascade.db'}"
    watcher = Watcher(CascadeEngine(snapshot(), MemorySink()), engine_for(url), seconds=60)
    await watcher.start()
    assert not watcher.reachable
    assert pinned(watcher) is None
    await watcher.aclose()


async def test_an_override_that_does_not_fit_is_said_once_and_shown(watching, engine, caplog):
    store.put(engine, "experiment:auto", {"weights": {"gone": 1}}, who="b", why="w")
    with caplog.at_level(logging.WARNING, "serving.overrides.watcher"):
        watcher = await watching()
        store.put(engine, "drain:large", {}, who="b", why="w")
        await until(lambda: "drain:large" in watcher.state)
    said = [record.message for record in caplog.records]
    assert len([line for line in said if "no arm 'gone'" in line]) == 1
    assert "no arm 'gone'" in watcher.report()["left_out"][0]


async def test_a_change_on_top_of_one_that_does_not_fit_takes_its_place(watching, engine):
    store.put(engine, "experiment:auto", {"weights": {"gone": 1}}, who="b", why="w")
    watcher = await watching()
    await watcher.change(lambda to: to.experiment("auto", {"ramp": 0.5}, NOTE))
    assert watcher.doubts == ()
    assert watcher.current.experiments["auto"].ramp == 0.5


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda to: to.unpin(NOTE), "nothing is pinned"),
        (lambda to: to.undrain("large", NOTE), "'large' is not drained"),
        (lambda to: to.experiment("auto", {}, NOTE), "nothing to change"),
        (lambda to: to.experiment("gone", {"ramp": 1}, NOTE), "no experiment 'gone'"),
        (lambda to: to.restore("gone", NOTE), "no experiment 'gone'"),
        (lambda to: to.experiment("auto", {"ramp": 3}, NOTE), "ramp"),
        (lambda to: to.pin("gone", NOTE), "no tier 'gone'"),
    ],
)
async def test_what_cannot_be_changed_is_refused_and_not_written(watching, engine, work, said):
    watcher = await watching()
    with pytest.raises(RequestError, match=said):
        await watcher.change(work)
    assert store.latest(engine) == 0
