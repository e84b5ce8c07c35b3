"""Calls of judges and estimators fill and drain the caches that answers find."""

import asyncio
from dataclasses import replace

import pytest

from cascade.asking.calls import ask
from cascade.backends.scripted import Script
from cascade.caches import CacheCard
from cascade.forecast import OUTPUT_TOKENS, Forecast
from cascade.protocols import Backend
from cascade.types import ChatRequest, Choice, Chunk, Completion, Usage
from judges.llm import LlmJudge
from tests.cascade.test_forecast import BLOCKS, SLOTS, Letters, Served, asked
from tests.engines import LOGPROBS_ONLY, Bench, ladder, request, tier
from tests.judges.voices import Voice, speaking

RUBRIC = {"role": "system", "content": "You grade answers by this rubric. " * 40}


def question(text, **values):
    messages = [RUBRIC, {"role": "user", "content": text}]
    return ChatRequest(id="r-judge", messages=messages, **values)


class Judged(Served):
    """A forecast, whose tier is asked for what goes to no client."""

    def __init__(self, cache=BLOCKS, *answers, **claims):
        super().__init__(cache, **claims)
        made = tier("t", *answers, cache=cache, **claims)
        self.tier = made
        self.forecast = Forecast({"t": made}, clock=self.clock)

    async def asks(self, request):
        self.clock.wait(1.0)
        return await ask(self.tier, request)


def used(**usage):
    return Script(text="4", usage=Usage(**{"input": 0, "cache_read": None, "output": 1, **usage}))


async def test_what_a_judge_sent_is_warm_for_the_next_that_begins_with_it():
    judged = Judged(BLOCKS, used())
    assert (await judged.quote(question("Is 4 right?"))).warm_tokens == 0
    await judged.asks(question("Is 4 right?"))
    told = await judged.quote(question("Is 5 right?"))
    assert told.warm_tokens > 200
    assert told.cold_tokens < 50


async def test_a_judge_on_the_same_server_takes_the_slot_of_a_conversation():
    cache = CacheCard(kind="slots", slots=1)
    judged = Judged(cache, used(), tokenizer=Letters())
    await judged.call(asked())
    assert (await judged.quote(asked())).warm_tokens > 200
    await judged.asks(question("Is 4 right?"))
    assert (await judged.quote(asked())).warm_tokens < 20


async def test_what_a_judges_call_reports_corrects_what_is_expected():
    judged = Judged(BLOCKS, used(), used(input=400, cache_read=0))
    await judged.asks(question("Is 4 right?"))
    told = await judged.quote(question("Is 4 right?"))
    assert told.warm_tokens
    assert told.estimated
    await judged.asks(question("Is 4 right?"))
    assert not (await judged.quote(question("Is 4 right?"))).estimated


async def test_equal_prompts_of_one_judge_may_be_under_way_at_once():
    judged = Judged(SLOTS, used(), tokenizer=Letters())
    await asyncio.gather(*(judged.asks(question("Is 4 right?")) for _ in range(3)))
    await asyncio.sleep(0)
    prompt = (await judged.reads(question("Is 4 right?"))).prompts["t"]
    held = judged.forecast.ledger.held_tokens("t")
    assert held == 3 * (prompt.chain.tokens + 1)


async def test_a_label_says_nothing_of_how_long_answers_are_nor_of_what_the_traffic_wants():
    judged = Judged(BLOCKS, used(output=1))
    await judged.asks(question("Is 4 right?", session="s"))
    assert (await judged.quote(asked())).expected_output_tokens == OUTPUT_TOKENS
    assert judged.forecast.recall(asked()).served_by == ""
    assert judged.forecast.under_way == 0


async def test_who_wants_to_know_is_told_of_each_call_once():
    judged, told = Judged(BLOCKS, used(input=7, cache_read=3)), []
    judged.forecast.tell(lambda tier, answer: told.append((tier, answer.usage.prompt)))
    await judged.asks(question("Is 4 right?"))
    assert told == [("t", 10)]


async def test_of_a_tier_without_a_cache_the_call_is_told_as_well():
    judged, told = Judged(None, used(input=7)), []
    judged.forecast.tell(lambda tier, answer: told.append(tier))
    assert (await judged.asks(question("Is 4 right?"))).completion.text == "4"
    assert told == ["t"]


async def test_a_call_that_fails_before_its_answer_leaves_nothing():
    judged, told = Judged(BLOCKS, Script(error="BackendServerError")), []
    judged.forecast.tell(lambda tier, answer: told.append(tier))
    with pytest.raises(Exception, match="as scripted"):
        await judged.asks(question("Is 4 right?"))
    assert told == []
    assert (await judged.quote(question("Is 4 right?"))).warm_tokens == 0


async def test_a_replica_is_chosen_for_a_judges_call_by_what_is_warm_there():
    looks = []
    seen = []

    class Choosing(Backend):
        async def stream(self, request):
            seen.append(looks[0](request, ["one"]))
            choice = Choice(text="4", finish_reason="stop")
            yield Chunk(completion=Completion(choices=(choice,), replica="one", usage=Usage()))

    made = replace(tier("t", cache=BLOCKS, watch=looks.append, replicated=True), backend=Choosing())
    Forecast({"t": made})
    await ask(made, question("Is 4 right?"))
    assert seen[0].tokens > 200
    assert looks[0](seen and question("Is 4 right?"), ["one"]) is None


async def test_a_call_that_nobody_forecasts_is_only_made():
    assert (await ask(tier("t", used()), question("Is 4 right?"))).completion.text == "4"


async def test_a_judge_of_the_engines_warms_what_the_engine_quotes():
    voice = Voice({"5": 1.0})
    small = tier("small", cache=BLOCKS, capabilities=LOGPROBS_ONLY)
    grading = speaking("grading", voice, cache=BLOCKS)
    tiers = {"small": small, "grading": grading}
    judge = LlmJudge(name="told", tier="grading", tiers=tiers)
    arm = ladder({"tier": "small", "judge": "told", "accept_at": 0.5}, {"tier": "grading"})
    bench = Bench(small, grading, judge=judge, arm=arm)
    await bench.run(request("What is 2 + 2, in one word?"))
    await asyncio.sleep(0)
    assert bench.engine.forecast.ledger.held_tokens("grading") > 50
    assert len(voice.requests) == 1
