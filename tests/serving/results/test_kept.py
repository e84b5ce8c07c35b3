import asyncio
import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from serving.results import Results, Trial, results
from serving.results.kept import (
    KEPT_SECONDS,
    SHARE_OF_TIME,
    SHOWN_TIMES,
    Computed,
    KeptResults,
    compute,
    keep,
    kept,
)
from serving.store.removal import Removal, remove
from serving.store.tables import experiment_results as table
from tests.serving.results.log import BEGUN, asked, called, said, sampled, write

TRIAL = Trial(
    name="auto",
    control="a",
    weights={"b": 1.0, "a": 1.0},
    since=BEGUN,
    guardrails={"cost": 0.2},
    acting=frozenset({"sound", "format"}),
)
OTHERS = {
    "since": BEGUN + 1,
    "until": BEGUN + 2,
    "weights": {"a": 2.0, "b": 1.0},
    "margin": 0.02,
    "guardrails": {},
    "acting": frozenset({"sound"}),
    "unit": "user",
    "control": "b",
    "name": "other",
}


def nothing_in(trial, crossed=0):
    return Results(trial=trial, arms=[], comparisons=[], crossed=crossed, shares=None, acting=[])


def counted(engine):
    """A log of which there is something to say in every respect."""
    ids = [(f"{arm}{i:03d}", arm) for arm in "ab" for i in range(60)]
    write(
        engine,
        [asked(each, arm, dollars=0.01 + 0.001 * (arm == "a"), baseline=0.03) for each, arm in ids],
        [
            *(
                called(each, outcome="accepted", first_token_ms=20.0, cache_read_tokens=7)
                for each, _ in ids
            ),
            *(sampled(each, 0.7) for each, _ in ids),
        ],
        [said(each, float(i % 2)) for i, (each, _) in enumerate(ids)],
    )


def test_what_is_kept_is_what_was_computed(engine):
    counted(engine)
    found = compute(engine, TRIAL)
    keep(engine, found)
    again = kept(engine, TRIAL)
    assert again == found
    assert list(again.results.trial.weights) == ["b", "a"]
    assert again.results == results(engine, TRIAL)
    assert again.results.comparisons[0].quality["judge:expert"].interval is not None


def test_results_of_anything_else_are_not_these(engine):
    keep(engine, Computed(results=nothing_in(TRIAL), at=BEGUN, took=1.0))
    assert kept(engine, replace(TRIAL, weights={"a": 1, "b": 1})) is not None
    for name, value in OTHERS.items():
        assert kept(engine, replace(TRIAL, **{name: value})) is None, name


def test_the_last_that_were_computed_are_kept_and_those_of_earlier_weights_for_a_day(engine):
    def number():
        with engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(table))

    earlier = replace(TRIAL, weights={"a": 1.0, "b": 3.0})
    keep(engine, Computed(results=nothing_in(earlier), at=BEGUN, took=1.0))
    for crossed in (1, 2):
        found = nothing_in(TRIAL, crossed)
        keep(engine, Computed(results=found, at=BEGUN + KEPT_SECONDS - crossed, took=1.0))
    assert kept(engine, TRIAL).results.crossed == 2
    assert number() == 2
    keep(engine, Computed(results=nothing_in(TRIAL), at=BEGUN + KEPT_SECONDS + 1, took=1.0))
    assert number() == 1


def test_what_another_release_kept_in_another_form_is_as_if_it_were_not_there(engine):
    keep(engine, Computed(results=nothing_in(TRIAL), at=BEGUN, took=1.0))
    with engine.begin() as connection:
        connection.execute(update(table).values(document='{"arms": 3}'))
    assert kept(engine, TRIAL) is None


def test_a_database_that_cannot_be_written_is_no_reason_to_go_without_results(database, engine):
    counted(engine)
    found = compute(engine, TRIAL)
    with database.outage():
        keep(engine, found)
    assert len(found.results.arms) == 2
    assert kept(engine, TRIAL) is None


def test_who_removes_requests_removes_the_results_that_counted_them(engine):
    counted(engine)
    keep(engine, compute(engine, TRIAL))
    remove(engine, Removal.of_user("nobody"), who="me")
    assert kept(engine, TRIAL) is not None
    remove(engine, Removal.of_tenant("default"), who="me")
    assert kept(engine, TRIAL) is None


def test_results_that_count_what_was_removed_while_they_were_computed_are_not_kept(engine):
    counted(engine)
    found = compute(engine, TRIAL)
    remove(engine, Removal.of_tenant("default"), who="me")
    keep(engine, found)
    assert kept(engine, TRIAL) is None
    keep(engine, compute(engine, TRIAL))
    assert kept(engine, TRIAL).results.arms == []


def test_what_takes_long_is_computed_seldom_and_shown_for_long():
    found = Computed(results=nothing_in(TRIAL), at=1000.0, took=1.5)
    assert found.fresh(1000.0 + 1.4 / SHARE_OF_TIME)
    assert not found.fresh(1000.0 + 1.6 / SHARE_OF_TIME)
    assert found.recent(1000.0 + 1.4 * SHOWN_TIMES)
    assert not found.recent(1000.0 + 1.6 * SHOWN_TIMES)
    assert not found.recent(1000.0 - 1.6 * SHOWN_TIMES)


class Computing:
    """Results that say how often they were asked for, and a clock."""

    def __init__(self):
        self.now = 1000.0
        self.took = 1.0
        self.times = 0
        self.go = threading.Event()
        self.go.set()
        self.fault = None

    def __call__(self, engine, trial):
        self.go.wait(10)
        self.times += 1
        if self.fault:
            raise self.fault
        return Computed(results=nothing_in(trial, self.times), at=self.now, took=self.took)


@pytest.fixture
def computing():
    return Computing()


@pytest.fixture
def results_kept(computing):
    return KeptResults(computing, lambda: computing.now)


async def test_what_is_fresh_is_computed_once_also_for_another_process(
    results_kept, computing, engine
):
    first = await results_kept.of(engine, TRIAL)
    computing.now += 19
    assert await results_kept.of(engine, TRIAL) == first
    assert await KeptResults(computing, lambda: computing.now).of(engine, TRIAL) == first
    assert computing.times == 1


async def test_what_is_old_is_given_at_once_and_computed_anew(results_kept, computing, engine):
    first = await results_kept.of(engine, TRIAL)
    computing.now += 21
    computing.go.clear()
    assert await results_kept.of(engine, TRIAL) == first
    assert await results_kept.of(engine, TRIAL) == first
    computing.go.set()
    for _ in range(1000):
        if (await results_kept.of(engine, TRIAL)).results.crossed == 2:
            break
        await asyncio.sleep(0.005)
    assert (await results_kept.of(engine, TRIAL)).results.crossed == 2
    assert computing.times == 2


async def test_what_is_too_old_is_waited_for(results_kept, computing, engine):
    await results_kept.of(engine, TRIAL)
    computing.now += 401
    assert (await results_kept.of(engine, TRIAL)).results.crossed == 2


async def test_results_since_a_change_are_never_those_from_before(results_kept, computing, engine):
    await results_kept.of(engine, TRIAL)
    changed = replace(TRIAL, since=BEGUN + 60, weights={"a": 1.0, "b": 9.0})
    assert (await results_kept.of(engine, changed)).results.trial == changed
    assert computing.times == 2


async def test_all_who_wait_for_the_first_get_the_same(results_kept, computing, engine):
    computing.go.clear()
    asking = [asyncio.create_task(results_kept.of(engine, TRIAL)) for _ in range(3)]
    await asyncio.sleep(0.05)
    computing.go.set()
    assert len({each.results.crossed for each in await asyncio.gather(*asking)}) == 1
    assert computing.times == 1


async def test_a_fault_is_the_askers_and_the_next_one_tries_again(results_kept, computing, engine):
    computing.fault = RuntimeError("no database")
    with pytest.raises(RuntimeError, match="no database"):
        await results_kept.of(engine, TRIAL)
    computing.fault = None
    assert (await results_kept.of(engine, TRIAL)).results.crossed == 2
