import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.limit import LimitedBackend, Limits
from cascade.caches import CacheCard
from cascade.engine import CascadeEngine
from cascade.errors import JudgeError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.snapshot import Snapshot
from cascade.types import Budget, Kind, Outcome
from serving.config import Shadow
from serving.shadow.budget import DayBudget
from serving.shadow.idle import Idle
from serving.shadow.shadows import BUDGET, BUSY, FULL, STOPPED, Shadows
from tests.engines import SMALL_THEN_LARGE, FixedJudge, MemorySink, request, tier

ALWAYS_SMALL = Arm(name=None, policy=FixedPolicy(name="always-small", tier="small"))
SLOW = Script(text="at last", first_token_seconds=30.0)


class LateLog:
    def __init__(self):
        self.taken = []

    def add(self, late):
        self.taken.append(late)

    @property
    def calls(self):
        return [call for late in self.taken for call in late.attempts]


def settings(**changes):
    return Shadow(**{"share": 1.0, "usd_per_day": 5, "judges": ["quality"], **changes})


def snapshot(*tiers, judge=None, **more):
    judges = {"quality": judge or FixedJudge(0.25, name="quality"), "told": FixedJudge(0.9)}
    return Snapshot(version="v1", tiers={t.name: t for t in tiers}, judges=judges, **more)


@asynccontextmanager
async def shadowing(known, *, drain_seconds=5.0, spent=None, idle=(), asks=(), **changes):
    """An engine whose results are shadowed; what comes of it, once the context is over."""
    log, sink = LateLog(), MemorySink()
    engine = None
    made = settings(**changes)
    forecast = CascadeEngine(known, sink).forecast
    shadows = Shadows(
        made,
        list(known.tiers) if made.tiers == "all" else made.tiers,
        snapshot=lambda: engine.snapshot,
        forecast=forecast,
        budget=DayBudget(made.usd_per_day, spent),
        idle=Idle(idle, forecast, made.idle_seconds),
        asks=dict.fromkeys(made.judges, asks),
        inner=sink,
        log=log,
        drain_seconds=drain_seconds,
    )
    engine = CascadeEngine(known, shadows, forecast=forecast)
    await shadows.start()
    yield SimpleNamespace(engine=engine, shadows=shadows, log=log, sink=sink)
    await shadows.aclose()


async def answer(it, arm=ALWAYS_SMALL, asked=None):
    asked = asked or request()
    result = await it.engine.run(asked, arm)
    it.shadows.sent(asked.id)
    return result


async def test_a_tier_that_was_not_asked_answers_once_the_answer_was_sent():
    known = snapshot(tier("small", "four"), tier("large", "4"))
    async with shadowing(known) as it:
        await it.engine.run(request(), ALWAYS_SMALL)
        await asyncio.sleep(0.02)
        assert known.tiers["large"].backend.requests == []
        it.shadows.sent("r1")
    (late,) = it.log.taken
    assert late.request_id == "r1"
    of_small, large, of_large = late.attempts
    assert [call.index for call in late.attempts] == [1, 2, 3]
    assert {call.kind for call in late.attempts} == {Kind.SHADOW}
    assert {call.propensity for call in late.attempts} == {1.0}
    assert (of_small.step.tier, of_small.step.judge) == ("small", "quality")
    assert of_small.verdict.score == 0.25
    assert (large.step.tier, large.step.judge, large.outcome) == ("large", None, None)
    assert large.completion.text == "4"
    assert large.quote is not None
    assert large.cost.total > 0
    assert (of_large.step.tier, of_large.step.judge) == ("large", "quality")


async def test_the_request_itself_is_as_it_was_without_shadows():
    known = snapshot(tier("small", "four"), tier("large", "4"))
    plain = await CascadeEngine(known, MemorySink()).run(request(), ALWAYS_SMALL)
    async with shadowing(known) as it:
        shadowed = await answer(it)
    assert [each.cost for each in shadowed.attempts] == [each.cost for each in plain.attempts]
    assert it.sink.results == [shadowed]


async def test_every_answer_of_a_cascade_is_judged_and_no_tier_is_asked_twice():
    known = snapshot(tier("small", "four"), tier("large", "4"), tier("huge", "Four"))
    known = replace(known, judges={**known.judges, "told": FixedJudge(0.1)})
    async with shadowing(known) as it:
        await answer(it, SMALL_THEN_LARGE)
    told = [(call.step.tier, call.step.judge) for call in it.log.calls]
    assert told == [("small", "quality"), ("large", "quality"), ("huge", None), ("huge", "quality")]
    assert len(known.tiers["large"].backend.requests) == 1


async def test_a_rule_holds_for_shadow_calls_too():
    known = snapshot(tier("small"), tier("large"), ruled_out=lambda _: {"large": "stays here"})
    async with shadowing(known) as it:
        await answer(it)
    assert [call.step.tier for call in it.log.calls] == ["small"]


async def test_a_judge_that_asks_a_tier_which_must_not_see_the_request_is_left_out():
    known = snapshot(tier("small"), ruled_out=lambda _: {"large": "stays here"})
    async with shadowing(known, asks=["large"]) as it:
        await answer(it)
    assert it.log.calls == []


async def test_a_judge_does_not_ask_the_tier_that_answered_once_that_is_taken_out():
    judge = FixedJudge(0.5, name="quality", logprobs=True)  # it is not free: it asks that tier
    known = snapshot(tier("small"), judge=judge, ruled_out=lambda _: {"small": "is drained"})
    async with shadowing(known, tiers=[]) as it:
        it.shadows.write(
            await CascadeEngine(replace(known, ruled_out=lambda _: {}), it.sink).run(
                request(), ALWAYS_SMALL
            )
        )
        it.shadows.sent("r1")
    assert it.log.calls == []
    assert judge.seen == []


async def test_a_tier_that_is_drained_while_it_waits_for_its_turn_is_not_asked():
    slow = tier("large", Script(text="4", first_token_seconds=0.2))
    known = snapshot(tier("small"), slow)
    async with shadowing(known, idle=["large"], judges=[]) as it:
        for name in ("r0", "r1"):
            await answer(it, asked=replace(request(), id=name))
        await asyncio.sleep(0.1)
        it.engine.snapshot = replace(known, ruled_out=lambda _: {"large": "is drained"})
    assert [late.request_id for late in it.log.taken] == ["r0"]


async def test_only_the_tiers_that_are_named_are_asked():
    known = snapshot(tier("small"), tier("large"), tier("huge"))
    async with shadowing(known, tiers=["huge"], judges=[]) as it:
        await answer(it)
    assert [call.step.tier for call in it.log.calls] == ["huge"]


async def test_a_tier_that_cannot_serve_the_request_is_not_asked():
    known = snapshot(tier("small"), tier("large", capabilities=frozenset()))
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    async with shadowing(known, judges=[]) as it:
        await answer(it, asked=replace(request(), tools=tools))
    assert it.log.calls == []


async def test_a_tier_that_fails_is_noted_and_the_next_one_is_asked():
    broken = tier("large", Script(error="BackendServerError"))
    known = snapshot(tier("small"), broken, tier("huge"))
    async with shadowing(known, judges=[]) as it:
        await answer(it)
    assert [(c.step.tier, c.outcome) for c in it.log.calls] == [
        ("large", Outcome.BACKEND_ERROR),
        ("huge", None),
    ]


async def test_a_judge_that_fails_is_noted():
    known = snapshot(tier("small"), judge=FixedJudge(JudgeError("no"), name="quality"))
    async with shadowing(known) as it:
        await answer(it)
    (call,) = it.log.calls
    assert (call.outcome, call.verdict, call.error.message) == (Outcome.JUDGE_ERROR, None, "no")


async def test_the_clients_budget_is_about_its_answer_and_not_about_shadows():
    known = snapshot(tier("small"), tier("large"))
    asked = replace(request(), budget=Budget(dollars=Decimal("0.0007"), seconds=5.0))
    async with shadowing(known, judges=[]) as it:
        await answer(it, asked=asked)
    assert known.tiers["large"].backend.requests[0].budget is None
    assert [call.step.tier for call in it.log.calls] == ["large"]


async def test_what_a_judge_needs_is_asked_of_tiers_that_give_it():
    judge = FixedJudge(0.5, name="quality", logprobs=True)
    known = snapshot(
        tier("small"), tier("large", capabilities=frozenset({"logprobs"})), judge=judge
    )
    async with shadowing(known) as it:
        await answer(it)
    assert known.tiers["large"].backend.requests[0].params == {"logprobs": True}


async def test_without_dollars_left_nothing_is_asked_and_it_is_counted():
    known = snapshot(tier("small"), tier("large"))
    async with shadowing(known, spent=lambda _: Decimal(5)) as it:
        await answer(it)
    assert it.log.calls == []
    assert it.shadows.dropped == {BUDGET: 1}


async def test_what_shadow_calls_cost_is_taken_from_the_budget():
    known = snapshot(tier("small"), tier("large"))
    async with shadowing(known, usd_per_day="0.00001", judges=[]) as it:
        for n in range(5):
            await answer(it, asked=replace(request(), id=f"r{n}"))
            while not it.log.taken:
                await asyncio.sleep(0.001)
    assert [late.request_id for late in it.log.taken] == ["r0"]
    assert it.shadows.dropped == {BUDGET: 4}


async def test_a_full_queue_drops_and_the_answers_do_not_wait():
    known = snapshot(tier("small"), tier("large", SLOW))
    async with shadowing(known, concurrency=1, waiting=2, judges=[], drain_seconds=0.05) as it:
        for n in range(6):
            async with asyncio.timeout(5):
                await answer(it, asked=replace(request(), id=f"r{n}"))
            await asyncio.sleep(0.01)
        assert it.shadows.dropped == {FULL: 3}
    assert it.shadows.dropped == {FULL: 3, STOPPED: 2}


async def test_stopping_books_what_was_spent_on_a_call_that_is_cut_off():
    known = snapshot(tier("small"), tier("large", SLOW))
    async with shadowing(known, judges=[], drain_seconds=0.05) as it:
        await answer(it)
        await asyncio.sleep(0.05)
    (call,) = it.log.calls
    assert (call.step.tier, call.outcome) == ("large", Outcome.CANCELLED)
    assert call.cost.total > 0


async def test_stopping_waits_for_what_can_be_done_in_time():
    known = snapshot(tier("small"), tier("large", Script(text="4", first_token_seconds=0.1)))
    async with shadowing(known, judges=[]) as it:
        await answer(it)
    assert [call.outcome for call in it.log.calls] == [None]


async def test_a_request_without_an_answer_is_not_shadowed():
    known = snapshot(tier("small", Script(error="BackendServerError")), tier("large"))
    async with shadowing(known) as it:
        result = await answer(it)
    assert result.error is not None
    assert it.log.taken == []


async def test_a_share_of_nothing_is_refused_and_a_share_leaves_most_requests_alone():
    with pytest.raises(ValueError, match="greater than 0"):
        settings(share=0)
    known = snapshot(tier("small"), tier("large"))
    async with shadowing(known, share=0.2, judges=[], waiting=1000) as it:
        for n in range(200):
            await answer(it, asked=replace(request(), id=f"r{n}"))
    assert 20 <= len(it.log.taken) <= 60
    assert {call.propensity for call in it.log.calls} == {0.2}


async def test_it_warms_the_ledger_and_is_no_turn_of_the_conversation():
    cache = CacheCard(kind="ttl", ttl_seconds=300.0, minimum_tokens=0)
    known = snapshot(tier("small", cache=cache), tier("large", cache=cache))
    asked = replace(request("a long story " * 40), session="s1")
    async with shadowing(known, judges=[]) as it:
        await answer(it, asked=asked)
    forecast = it.engine.forecast
    assert forecast.ledger.held_tokens("large") > 0
    assert forecast.traffic.served_by("default", "s1") == "small"


async def test_a_fault_in_one_of_them_does_not_end_the_others():
    class Bug(FixedJudge):
        async def judge(self, request, completion):
            if request.id == "r0":
                raise ZeroDivisionError
            return await super().judge(request, completion)

    known = snapshot(tier("small"), judge=Bug(0.5, name="quality"))
    async with shadowing(known, concurrency=1) as it:
        for n in range(2):
            await answer(it, asked=replace(request(), id=f"r{n}"))
    assert [late.request_id for late in it.log.taken] == ["r1"]


async def test_a_tier_on_this_machine_is_asked_when_no_client_waits():
    known = snapshot(tier("small"), tier("large"), tier("slow", SLOW))
    slow = Arm(name=None, policy=FixedPolicy(name="slow", tier="slow"))
    async with shadowing(known, idle=["large"], tiers=["large"], judges=[]) as it:
        waiting = asyncio.create_task(answer(it, slow, asked=replace(request(), id="r0")))
        await asyncio.sleep(0.05)
        await answer(it)
        await asyncio.sleep(0.1)
        assert known.tiers["large"].backend.requests == []
        waiting.cancel()
    assert [late.request_id for late in it.log.taken] == ["r1"]
    assert it.shadows.dropped == {}


async def test_such_a_tier_is_asked_for_one_request_at_a_time():
    known = snapshot(tier("small"), tier("large", Script(text="4", first_token_seconds=0.2)))
    async with shadowing(known, idle=["large"], judges=[], concurrency=4) as it:
        for n in range(3):
            await answer(it, asked=replace(request(), id=f"r{n}"))
        await asyncio.sleep(0.1)
        assert len(known.tiers["large"].backend.requests) == 1
    assert len(it.log.taken) == 3


async def test_a_request_that_finds_no_such_moment_is_dropped():
    known = snapshot(tier("small"), tier("large"), tier("slow", SLOW))
    slow = Arm(name=None, policy=FixedPolicy(name="slow", tier="slow"))
    async with shadowing(known, idle=["large"], tiers=["large"], idle_seconds=0.1) as it:
        waiting = asyncio.create_task(answer(it, slow, asked=replace(request(), id="r0")))
        await asyncio.sleep(0.05)
        await answer(it)
        await asyncio.sleep(0.3)
        waiting.cancel()
    assert it.shadows.dropped == {BUSY: 1}
    assert [(call.step.tier, call.step.judge) for call in it.log.calls] == [("small", "quality")]


async def test_a_judge_waits_as_well_where_it_asks_such_a_tier():
    judge = FixedJudge(0.5, name="quality")
    known = snapshot(tier("small"), tier("slow", SLOW), tier("large"), judge=judge)
    slow = Arm(name=None, policy=FixedPolicy(name="slow", tier="slow"))
    async with shadowing(known, idle=["large"], asks=["large"], idle_seconds=0.1) as it:
        waiting = asyncio.create_task(answer(it, slow, asked=replace(request(), id="r0")))
        await asyncio.sleep(0.05)
        await answer(it)
        await asyncio.sleep(0.3)
        waiting.cancel()
    assert it.shadows.dropped == {BUSY: 1}
    assert judge.seen == []


def limited(concurrent, seconds, name="large"):
    inner = ScriptedBackend(answers=(Script(text="4", first_token_seconds=seconds),), model=name)
    backend = LimitedBackend(inner, Limits(concurrent=concurrent, waiting=9, wait_seconds=30.0))
    made = replace(tier(name), backend=backend, loads=lambda: [backend.load()])
    return made, inner


@pytest.mark.parametrize(("concurrent", "clients"), [(1, 1), (2, 1)])
async def test_a_tier_with_limits_keeps_a_place_for_clients(concurrent, clients):
    large, inner = limited(concurrent, 0.3)
    known = snapshot(tier("small"), large)
    pinned = Arm(name=None, policy=FixedPolicy(name="large", tier="large"))
    async with shadowing(known, tiers=["large"], judges=[]) as it:
        waiting = [
            asyncio.create_task(it.engine.run(replace(request(), id=f"c{n}"), pinned))
            for n in range(clients)
        ]
        await asyncio.sleep(0.05)
        await answer(it)
        await asyncio.sleep(0.1)
        assert len(inner.requests) == clients
        await asyncio.gather(*waiting)
    assert [late.request_id for late in it.log.taken] == ["r1"]
    assert len(inner.requests) == clients + 1


async def test_a_tier_whose_places_are_all_taken_is_left_alone():
    large, inner = limited(1, 60.0)
    known = snapshot(tier("small"), large)
    pinned = Arm(name=None, policy=FixedPolicy(name="large", tier="large"))
    async with shadowing(known, tiers=["large"], judges=[], idle_seconds=0.1) as it:
        client = asyncio.create_task(it.engine.run(replace(request(), id="c"), pinned))
        await asyncio.sleep(0.05)
        await answer(it)
        await asyncio.sleep(0.3)
        client.cancel()
    assert it.shadows.dropped == {BUSY: 1}
    assert len(inner.requests) == 1
