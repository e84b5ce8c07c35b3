import asyncio
import logging
import time
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from serving.alerts.findings import turn_off
from serving.alerts.log import Finding, keep, latest
from serving.alerts.turn import turn
from serving.alerts.watch import Watch
from serving.alerts.webhook import Webhook
from serving.overrides.store import change, history, state
from serving.results import Trial, results
from serving.results.guardrails import breaches
from serving.results.kept import kept
from serving.results.period import SETTLE_SECONDS, current
from serving.store.database import engine_for
from tests.serving.alerts.hooks import listening
from tests.serving.results.log import asked, said, write
from tests.serving.store.waiting import eventually

TRIAL = Trial(name="auto", control="a", weights={"a": 1, "b": 1}, guardrails={"quality": -0.02})


@pytest.fixture
def watch(database):
    """Makes watches on the database, each with connections of its own."""

    def make(hook=None, trials=(TRIAL,), **options):
        webhook = Webhook(hook.url, pauses_seconds=(0,)) if hook else None
        return Watch(engine_for(database.url), trials, webhook=webhook, **options)

    return make


def worse(engine, count=200, prefix=""):
    """An experiment whose second arm is clearly worse."""
    began = time.time() + (SETTLE_SECONDS if prefix else -60)
    ids = [(f"{prefix}{arm}{i}", arm) for arm in "ab" for i in range(count)]
    write(
        engine,
        [asked(each, arm, created_at=began) for each, arm in ids],
        words=[said(each, float(arm == "a")) for each, arm in ids],
    )


async def test_an_arm_beyond_its_guardrail_is_turned_off_logged_and_told(engine, watch, caplog):
    worse(engine)
    caplog.set_level(logging.WARNING)
    async with listening() as hook:
        looking = watch(hook)
        await looking.look()
        await looking.look()
        await looking.aclose()
    override = state(engine)["experiment:auto"]
    assert override.value == {"weights": {"b": 0}}
    assert override.who == "guardrail"
    assert "b is beyond the guardrail quality of -0.02" in override.why
    (alert,) = latest(engine)
    assert (alert.kind, alert.subject) == ("guardrail", "auto/b")
    assert alert.delivered_at is not None
    assert [each["id"] for each in hook.came] == [alert.id]
    assert "it is turned off" in hook.came[0]["text"]
    assert "experiment auto: b is turned off" in caplog.text


async def test_an_arm_that_cannot_be_told_of_is_not_turned_off(engine, watch):
    worse(engine)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE alerts RENAME TO elsewhere"))
    looking = watch()
    with pytest.raises(DBAPIError):
        await looking.look()
    assert history(engine) == []
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO alerts"))
    await looking.look()
    await looking.aclose()
    assert len(history(engine)) == len(latest(engine)) == 1


async def test_an_arm_that_was_turned_on_again_and_is_still_worse_is_told_again(engine, watch):
    clock = Clock()
    looking = watch(clock=clock)
    worse(engine)
    await looking.look()
    change(engine, "experiment:auto", {"weights": {"b": 1}}, who="me", why="again")
    worse(engine, prefix="later")
    clock.now += 60
    await looking.look()
    await looking.aclose()
    assert [each.subject for each in latest(engine)] == ["auto/b", "auto/b"]


async def test_what_else_is_overridden_stays(engine, watch):
    worse(engine)
    change(engine, "experiment:auto", {"ramp": 0.5}, who="me", why="slowly")
    looking = watch()
    await looking.look()
    await looking.aclose()
    assert state(engine)["experiment:auto"].value == {"ramp": 0.5, "weights": {"b": 0}}


async def test_wrong_shares_are_told_once(engine, watch):
    began = time.time() - 60
    write(engine, [asked(f"a{i}", "a", created_at=began) for i in range(200)])
    looking = watch(trials=[Trial(name="auto", control="a", weights={"a": 1, "b": 1})])
    await looking.look()
    await looking.look()
    await looking.aclose()
    (alert,) = latest(engine)
    assert (alert.kind, alert.subject) == ("sample_ratio", "auto")
    assert "a 200, b 0" in alert.message
    assert history(engine) == []


async def test_the_results_are_kept_for_who_asks_next(engine, watch):
    worse(engine)
    plain = replace(TRIAL, guardrails={})
    looking = watch(trials=[plain])
    before = time.time()
    await looking.look()
    await looking.aclose()
    found = kept(engine, current(engine, plain, time.time()))
    assert before <= found.at <= time.time()
    assert found.results == results(engine, found.results.trial)
    assert [each.requests for each in found.results.arms] == [200, 200]


async def test_results_that_cannot_be_had_keep_no_guardrail_from_being_watched(engine, watch):
    worse(engine)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE attempts RENAME COLUMN first_token_ms TO elsewhere"))
    looking = watch(trials=[replace(TRIAL, name="other"), TRIAL])
    await looking.look()
    await looking.aclose()
    assert state(engine)["experiment:auto"].value == {"weights": {"b": 0}}
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE attempts RENAME COLUMN elsewhere TO first_token_ms"))


async def test_the_results_of_an_arm_that_is_off_are_kept_as_they_were_up_to_then(engine, watch):
    worse(engine)
    looking = watch()
    await looking.look()  # turns the arm off
    await looking.aclose()
    looking = watch()
    await looking.look()
    await looking.aclose()
    over = current(engine, TRIAL, time.time())
    assert over.until is not None
    assert len(kept(engine, over).results.arms) == 2


def test_what_was_changed_while_it_was_added_up_is_looked_at_anew(engine):
    worse(engine)
    found = breaches(engine, current(engine, TRIAL, time.time()))
    assert [each.arm for each in found] == ["b"]
    change(engine, "experiment:auto", {"weights": {"b": 3}}, who="me", why="it is mended")
    turn_off(engine, TRIAL, found, version=0)
    assert state(engine)["experiment:auto"].value == {"weights": {"b": 3}}
    assert latest(engine) == []


async def test_a_webhook_that_fails_is_logged_once_and_tried_again(engine, watch, caplog):
    worse(engine)
    caplog.set_level(logging.WARNING)
    async with listening([500, 500]) as hook:
        looking = watch(hook)
        await looking.look()
        await looking.look()
        assert latest(engine)[0].delivered_at is None
        await looking.look()
        await looking.aclose()
    assert latest(engine)[0].delivered_at is not None
    assert caplog.text.count("the webhook fails") == 1


async def test_an_alert_that_is_refused_stands_in_no_others_way(engine, watch, caplog):
    for subject in ("first", "second"):
        keep(engine, Finding(kind="cost", subject=subject, message="it is dear", details={}))
    caplog.set_level(logging.WARNING)
    async with listening([400]) as hook:
        looking = watch(hook)
        await looking.look()
        await looking.look()
        await looking.aclose()
    assert [each["subject"] for each in hook.came] == ["first", "second"]
    second, first = latest(engine)
    assert (first.delivered_at, second.delivered_at is None) == (None, False)
    assert caplog.text.count("the webhook refuses it") == 1


async def test_two_processes_tell_it_once(engine, watch):
    worse(engine)
    async with listening() as hook:
        both = [watch(hook), watch(hook)]
        for each in both:
            await each.look()
        for each in both:
            await each.aclose()
    assert len(hook.came) == 1
    assert len(history(engine)) == 1


class Clock:
    """A second passes each time it is looked at."""

    def __init__(self):
        self.now = time.time()

    def __call__(self):
        self.now += 1
        return self.now


async def test_experiments_are_added_up_the_less_often_the_longer_it_takes(engine, watch):
    clock = Clock()
    looking = watch(clock=clock)
    await looking.look()  # it takes a second: nineteen are for other things
    worse(engine)
    await looking.look()
    assert latest(engine) == []
    clock.now += 20
    await looking.look()
    assert len(latest(engine)) == 1
    await looking.aclose()


async def test_what_is_called_off_in_the_middle_leaves_no_turn_behind(engine, watch):
    for pause in (0, 0.001, 0.01, 0.05):
        looking = watch(every_seconds=0.001)
        await looking.start()
        await asyncio.sleep(pause)
        await looking.aclose()
        with turn(engine) as mine:
            assert mine


async def test_it_looks_by_itself_and_outlives_an_outage(engine, watch, database, caplog):
    caplog.set_level(logging.WARNING)
    looking = watch(every_seconds=0.01)
    worse(engine)
    with database.outage():
        await looking.start()
        await _settled(lambda: "cannot be watched" in caplog.text)
    await _settled(lambda: bool(latest(engine)))
    await looking.aclose()
    assert latest(engine)[0].kind == "guardrail"


async def test_a_fault_of_its_own_is_logged_and_it_looks_again(engine, database, caplog):
    class Faulty(Watch):
        looks = 0

        async def look(self):
            self.looks += 1
            raise ValueError

    caplog.set_level(logging.WARNING)
    looking = Faulty(engine_for(database.url), [], every_seconds=0.001)
    await looking.start()
    await _settled(lambda: looking.looks > 2)
    await looking.aclose()
    assert caplog.text.count("cannot be watched: ValueError") == 1


async def _settled(done):
    await asyncio.to_thread(eventually, done)
