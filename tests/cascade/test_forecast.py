"""What an engine remembers of its calls, and quotes the next ones with."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.caches import CacheCard
from cascade.forecast import OUTPUT_TOKENS, Forecast
from cascade.protocols import Tokenizer
from cascade.quote import Quote, Shared
from cascade.types import ChatRequest, Choice, Completion, Cost, Kind, Outcome, Step, Usage
from tests.builders import attempt, failed
from tests.engines import tier
from tests.ledgers import Clock

SYSTEM = {"role": "system", "content": "You are a careful clerk. " * 40}
BLOCKS = CacheCard(kind="blocks", block=16)
SLOTS = CacheCard(kind="slots", slots=4)
TIMED = CacheCard(kind="ttl", ttl_seconds=300.0)
CARDS = pytest.mark.parametrize("cache", [BLOCKS, SLOTS, TIMED])


class Letters(Tokenizer):
    """A token is a letter. Answers are only cut once it is let."""

    def __init__(self):
        self.down = False
        self.let = asyncio.Event()
        self.let.set()

    async def count(self, request):
        return None

    async def ids(self, request):
        return None if self.down else [ord(c) for m in request.messages for c in m["content"]]

    async def text_ids(self, text):
        await self.let.wait()
        return [ord(c) for c in text]


def asked(text="What is next?", *, said=(), **values):
    messages = [SYSTEM]
    for ask, answer in said:
        messages += ({"role": "user", "content": ask}, {"role": "assistant", "content": answer})
    messages.append({"role": "user", "content": text})
    return ChatRequest(**{"id": "r", "messages": messages, "session": "s", **values})


class Served:
    """A forecast for one tier, "t", and calls to it."""

    def __init__(self, cache=BLOCKS, *, patience_seconds=60.0, **claims):
        self.looks = []
        self.clock = Clock()
        made = tier("t", cache=cache, watch=self.looks.append, **claims)
        self.counted = ["t"] if made.tokenizer else []
        self.forecast = Forecast({"t": made}, clock=self.clock, patience_seconds=patience_seconds)

    async def reads(self, request):
        self.clock.wait(1.0)
        return await self.forecast.read(request, ["t"], counted=self.counted)

    async def quote(self, request, judge=None):
        reading = await self.reads(request)
        [told] = self.forecast.quotes(request, reading, [Step(tier="t", judge=judge)])
        self.forecast.over(request, reading, [], {})
        return told

    async def begins(self, request, replica=None):
        reading = await self.reads(request)
        list(self.forecast.quotes(request, reading, []))
        self.clock.wait(1.0)
        self.forecast.began(request, reading.prompts["t"], replica)
        return reading

    async def call(self, request, *texts, replica="one", **usage):
        reading = await self.begins(request, replica)
        return self.ends(request, reading, *texts, replica=replica, **usage)

    def ends(self, request, reading, *texts, cached=None, replica="one", **usage):
        prompt = reading.prompts["t"]
        used = {"input": prompt.chain.tokens - (cached or 0), "cache_read": cached, "output": 2}
        answer = Completion(
            choices=[Choice(text=text) for text in texts or ("ok",)],
            tier="t",
            replica=replica,
            usage=Usage(**{**used, **usage}),
        )
        call = attempt(tier="t", completion=answer)
        self.forecast.ended(request, prompt, call)
        self.forecast.over(request, reading, [call], {}, answered="t")
        return prompt


@CARDS
async def test_what_was_asked_once_is_warm(cache):
    served = Served(cache)
    assert (await served.quote(asked())).warm_tokens == 0
    await served.call(asked(), cached=0)
    told = await served.quote(asked("What is last?"))
    assert told.warm_tokens > 200
    assert told.cold_tokens < 50


@CARDS
async def test_the_next_turn_finds_the_prompt_warm_and_at_servers_of_ones_own_the_answer(cache):
    served = Served(cache, tokenizer=Letters())
    first = await served.call(asked("a" * 64), "b" * 64, cached=0)
    second = asked("c" * 64, said=[("a" * 64, "b" * 64)])
    told = await served.quote(second)
    block, answered = cache.block, 0 if cache.kind == "ttl" else 64
    assert told.warm_tokens == (first.chain.tokens + answered) // block * block
    assert told.cold_tokens == first.chain.tokens + 128 - told.warm_tokens


@pytest.mark.parametrize("cache", [BLOCKS, TIMED])
async def test_of_requests_at_the_same_time_all_are_cold_until_one_began(cache):
    served = Served(cache)
    quotes = [await served.quote(asked(id=f"r{number}")) for number in range(5)]
    assert [told.warm_tokens for told in quotes] == [0] * 5
    await served.begins(asked(id="r0"))
    assert (await served.quote(asked(id="r6"))).warm_tokens > 200


async def test_an_answer_that_never_ends_leaves_its_prompt_warm():
    served = Served()
    reading = await served.begins(asked())
    served.forecast.over(asked(), reading, [attempt(outcome=Outcome.CANCELLED)], {})
    assert (await served.quote(asked())).warm_tokens > 200


async def test_a_call_that_failed_teaches_nothing():
    served = Served()
    before = await served.quote(asked())
    reading = await served.reads(asked())
    served.forecast.over(asked(), reading, [failed(tier="t")], {})
    assert replace(await served.quote(asked()), shared=before.shared) == before
    assert served.forecast.recall(asked()).served_by == ""


@pytest.mark.parametrize("replicated", [False, True])
async def test_what_a_report_says_is_gone_is_not_quoted_as_warm(replicated):
    """Where servers are not told apart, also what one of them began is held against it."""
    first, other = asked(session="a"), asked(session="b")
    other = replace(other, messages=[{"role": "user", "content": "Something else. " * 80}])
    served = Served(replicated=replicated)
    await served.call(first, cached=0)
    await served.call(other, cached=0)
    assert (await served.quote(first)).warm_tokens > 200
    await served.call(other, cached=0)  # it had gone, and what was used before it as well
    assert (await served.quote(first)).warm_tokens == 0


async def test_servers_of_a_tier_have_caches_of_their_own_and_the_best_is_quoted():
    served = Served(replicated=True)
    await served.call(asked(), cached=0, replica="one")
    await served.call(asked(said=[("a", "b")]), cached=0, replica="two")
    sight = served.looks[0](asked(), ["one", "two"])
    assert sight is None  # nothing is open
    await served.reads(asked())
    seen = served.looks[0](asked(), ["one", "two", "three"]).seen.warm_tokens
    assert seen["one"] > seen["two"] > seen["three"] == 0
    assert (await served.quote(asked())).warm_tokens == seen["one"]


async def test_what_nobody_reported_is_quoted_as_an_estimate():
    served = Served()
    await served.call(asked(), cached=None)
    assert (await served.quote(asked())).estimated
    await served.call(asked(), cached=250)
    assert not (await served.quote(asked())).estimated


async def test_a_tier_without_a_cache_is_never_warm():
    served = Served(None)
    await served.call(asked(), cached=0)
    told = await served.quote(asked())
    assert (told.warm_tokens, told.cold_premium, told.shared.premium) == (0, None, 0.0)


async def test_a_prompt_below_the_minimum_is_never_warm():
    served = Served(replace(TIMED, minimum_tokens=5_000))
    await served.call(asked(), cached=0)
    assert (await served.quote(asked())).warm_tokens == 0


async def test_a_prefix_cools_down():
    served = Served(TIMED)
    await served.call(asked(), cached=0)
    served.clock.wait(290.0)
    assert (await served.quote(asked())).warm_tokens > 200
    served.clock.wait(300.0)
    assert (await served.quote(asked())).warm_tokens == 0


async def test_answers_are_expected_to_be_as_long_as_they_were_and_no_longer_than_allowed():
    served = Served()
    assert (await served.quote(asked())).expected_output_tokens == OUTPUT_TOKENS
    for _ in range(100):
        await served.call(asked(), cached=0, output=30, reasoning=10)
    assert (await served.quote(asked())).expected_output_tokens == pytest.approx(50, abs=2)
    short = asked(params={"max_tokens": 7})
    assert (await served.quote(short)).expected_output_tokens == 7


async def test_of_several_answers_each_is_as_long_as_one_and_all_are_paid_for():
    served = Served()
    for _ in range(200):
        await served.call(asked(params={"n": 3}), "a", "b", "c", cached=0, output=30)
    one = (await served.quote(asked())).expected_output_tokens
    assert one == pytest.approx(10, abs=13)
    assert (await served.quote(asked(params={"n": 3}))).expected_output_tokens == 3 * one


async def test_whichever_of_several_answers_a_conversation_goes_on_with_is_warm():
    served = Served(tokenizer=Letters())
    await served.call(asked("a" * 64, params={"n": 2}), "b" * 64, "c" * 64, cached=0)
    for chosen in ("b", "c"):
        told = await served.quote(asked("next", said=[("a" * 64, chosen * 64)]))
        assert told.warm_tokens >= len(SYSTEM["content"]) + 120


async def test_what_judging_costs_is_expected_again():
    served = Served()
    step = Step(tier="t", judge="sound")
    bill = Cost(input=Decimal("0.001"))
    for _ in range(200):
        served.forecast.judged(attempt(kind=Kind.JUDGE, step=step, cost=bill))
    served.forecast.judged(attempt(kind=Kind.JUDGE, step=step, cost=None))
    told = await served.quote(asked(), judge="sound")
    assert float(told.judge_dollars) == pytest.approx(0.001, rel=0.06)
    assert (await served.quote(asked(), judge="other")).judge_dollars == 0
    assert (await served.quote(asked())).judge_dollars == 0


async def test_a_session_is_told_who_answered_its_last_turn():
    served = Served()
    await served.call(asked(), cached=0)
    assert served.forecast.recall(asked()).served_by == "t"
    for other in (asked(tenant="other"), asked(session="other"), asked(session="")):
        assert served.forecast.recall(other) is other


async def test_nothing_is_kept_of_a_request_that_is_over():
    served = Served(replicated=True)
    reading = await served.reads(asked())
    assert served.looks[0](asked(), ["one"]) is not None
    served.forecast.over(asked(), reading, [], {})
    assert served.looks[0](asked(), ["one"]) is None


async def test_what_a_turn_led_by_is_what_it_wanted():
    """A policy that weighs dollars says so; of another only what it called is known."""
    shared = Shared(premium=0.08, cold=0.08)
    wants = {}
    for lead in (-0.07, -0.01):
        served = Served(TIMED)
        for _ in range(300):
            served.clock.wait(400.0)
            reading = await served.reads(asked())
            led = {"t": (Quote(tier="t", shared=shared), lead)}
            served.forecast.over(asked(), reading, [], led)
        wants[lead] = (await served.quote(asked())).shared.credit
    assert 0.0 < wants[-0.07] < wants[-0.01]


async def test_a_tier_that_is_never_called_is_credited_nothing_in_the_end():
    served = Served(TIMED)
    for _ in range(3):
        await served.quote(asked())
    early = (await served.quote(asked())).shared.credit
    for _ in range(1_000):
        await served.quote(asked())
    assert (await served.quote(asked())).shared.credit < early / 100


async def test_a_tokenizer_that_is_down_leaves_estimates_which_match_no_exact_prompt():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer)
    exact = await served.call(asked(), cached=0)
    tokenizer.down = True
    told = await served.quote(asked())
    assert told.warm_tokens == 0
    await served.call(asked())
    assert (await served.quote(asked())).warm_tokens > 200
    tokenizer.down = False
    back = await served.quote(asked())
    assert back.warm_tokens + back.cold_tokens == exact.chain.tokens
    assert back.warm_tokens == exact.chain.tokens // 16 * 16


@CARDS
async def test_estimates_and_exact_prompts_live_in_one_cache_without_harm(cache):
    tokenizer = Letters()
    served = Served(cache, tokenizer=tokenizer)
    for turn in range(40):
        tokenizer.down = turn % 3 == 0
        told = await served.quote(asked(f"{turn}"))
        assert 0 <= told.warm_tokens <= told.warm_tokens + told.cold_tokens
        await served.call(asked(f"{turn}"), cached=told.warm_tokens // 2)


async def test_a_turn_waits_until_the_turn_before_it_is_counted():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer)
    tokenizer.let.clear()
    await served.call(asked("a" * 64), "b" * 64, cached=0)
    following = asyncio.create_task(served.quote(asked("c", said=[("a" * 64, "b" * 64)])))
    await asyncio.sleep(0.01)
    assert not following.done()
    tokenizer.let.set()
    assert (await following).warm_tokens >= len(SYSTEM["content"]) + 120


async def test_both_of_two_turns_at_the_same_time_are_waited_for():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer)
    tokenizer.let.clear()
    turns = [asked("a" * 64), asked("b" * 64)]
    readings = [await served.begins(turn) for turn in turns]
    for turn, reading in zip(turns, readings, strict=True):
        served.ends(turn, reading, turn.messages[-1]["content"])
    tasks = [
        asyncio.create_task(served.quote(asked("c", said=[(letter * 64, letter * 64)])))
        for letter in "ab"
    ]
    await asyncio.sleep(0.01)
    tokenizer.let.set()
    for told in await asyncio.gather(*tasks):
        assert told.warm_tokens >= len(SYSTEM["content"]) + 120


async def test_other_conversations_do_not_wait_for_it():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer)
    tokenizer.let.clear()
    await served.call(asked(), cached=0)
    for other in (asked(session="other"), asked(tenant="other"), asked(session="")):
        await asyncio.wait_for(served.quote(other), 30)
    await served.forecast.aclose()


async def test_a_turn_does_not_wait_longer_than_its_patience():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer, patience_seconds=0.01)
    tokenizer.let.clear()
    await served.call(asked("a" * 64), "b" * 64, cached=0)
    told = await served.quote(asked("c", said=[("a" * 64, "b" * 64)]))
    assert told.warm_tokens > len(SYSTEM["content"])  # what is known of it
    await served.forecast.aclose()


async def test_what_is_still_being_counted_ends_with_the_service():
    tokenizer = Letters()
    served = Served(tokenizer=tokenizer)
    tokenizer.let.clear()
    before = asyncio.all_tasks()
    for number in range(3):
        await served.call(asked(session=f"{number}"), cached=0)
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks() - before) == 3
    await served.forecast.aclose()
    assert asyncio.all_tasks() == before
    await served.forecast.aclose()


async def test_a_shared_part_that_others_used_just_now_gains_nothing_by_being_used_again():
    served = Served(TIMED)
    await served.call(asked(session="a"))
    await asyncio.sleep(0)
    served.clock.wait(250.0)
    stale = (await served.quote(asked(session="a"))).shared.credit
    await served.call(asked("Something else?", session="b"))
    await asyncio.sleep(0)
    fresh = (await served.quote(asked(session="a"))).shared.credit
    assert stale > 0.0
    assert fresh < stale / 10


async def test_what_judging_takes_is_expected_the_next_time():
    served = Served()
    reading = await served.reads(asked())
    step = Step(tier="t", judge="sound")
    served.forecast.judged(attempt(kind=Kind.JUDGE, step=step, cost=None, seconds=0.5))
    [told] = served.forecast.quotes(asked(), reading, [step])
    assert told.judge_seconds == pytest.approx(0.25), "beside the nothing that was there first"
    assert told.judge_dollars == 0
