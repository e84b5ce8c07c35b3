import asyncio
import threading
from dataclasses import replace

import pytest

from serving.results import Results, Trial
from serving.results.kept import FRESH_SECONDS, KeptResults

ENGINE = object()
TRIAL = Trial(name="auto", control="a", weights={"a": 1.0})


class Computing:
    """Results that say how often they were asked for, and a clock."""

    def __init__(self):
        self.now = 1000.0
        self.times = 0
        self.go = threading.Event()
        self.go.set()
        self.fault = None

    def __call__(self, engine, trial):
        self.go.wait(10)
        self.times += 1
        if self.fault:
            raise self.fault
        return Results(
            trial=trial, arms=[], comparisons=[], crossed=self.times, shares=None, acting=[]
        )


@pytest.fixture
def computing():
    return Computing()


@pytest.fixture
def kept(computing):
    return KeptResults(computing, lambda: computing.now)


async def test_what_is_fresh_is_computed_once(kept, computing):
    first = await kept.of(ENGINE, TRIAL)
    computing.now += FRESH_SECONDS / 2
    assert await kept.of(ENGINE, TRIAL) is first
    assert computing.times == 1


async def test_what_is_old_is_given_at_once_and_computed_anew(kept, computing):
    first = await kept.of(ENGINE, TRIAL)
    computing.now += FRESH_SECONDS + 1
    computing.go.clear()
    assert await kept.of(ENGINE, TRIAL) is first
    assert await kept.of(ENGINE, TRIAL) is first
    computing.go.set()
    for _ in range(1000):
        if (await kept.of(ENGINE, TRIAL)).results.crossed == 2:
            break
        await asyncio.sleep(0.005)
    assert (await kept.of(ENGINE, TRIAL)).results.crossed == 2
    assert computing.times == 2


async def test_what_takes_long_is_computed_seldom(kept, computing):
    computing.go.clear()
    waiting = asyncio.create_task(kept.of(ENGINE, TRIAL))
    await asyncio.sleep(0.02)
    computing.now += 10  # it takes ten seconds
    computing.go.set()
    first = await waiting
    assert (first.at, first.took) == (1000.0, 10.0)
    computing.now += 150
    await kept.of(ENGINE, TRIAL)
    await asyncio.sleep(0.02)
    assert computing.times == 1


async def test_another_time_or_other_weights_are_other_results(kept, computing):
    await kept.of(ENGINE, TRIAL)
    since = await kept.of(ENGINE, replace(TRIAL, since=5.0))
    assert since.results.trial.since == 5.0
    await kept.of(ENGINE, replace(TRIAL, weights={"a": 2.0}))
    assert computing.times == 3


async def test_all_who_wait_for_the_first_get_the_same(kept, computing):
    computing.go.clear()
    asking = [asyncio.create_task(kept.of(ENGINE, TRIAL)) for _ in range(3)]
    await asyncio.sleep(0.02)
    computing.go.set()
    found = await asyncio.gather(*asking)
    assert found[0] is found[1] is found[2]
    assert computing.times == 1


async def test_a_fault_is_the_askers_and_the_next_one_tries_again(kept, computing):
    computing.fault = RuntimeError("no database")
    with pytest.raises(RuntimeError, match="no database"):
        await kept.of(ENGINE, TRIAL)
    computing.fault = None
    assert (await kept.of(ENGINE, TRIAL)).results.crossed == 2
