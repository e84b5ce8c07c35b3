"""An engine whose tiers have prompt caches: what it quotes, and what then turns out."""

from contextlib import aclosing
from dataclasses import replace

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.caches import CacheCard
from cascade.errors import BackendUnreachableError
from cascade.experiments import Arm
from cascade.forecast import Forecast
from cascade.policies.fixed import FixedPolicy
from cascade.policies.utility import UtilityPolicy
from cascade.protocols import Backend, Tokenizer
from cascade.result import Delta
from cascade.types import (
    ChatRequest,
    Choice,
    Chunk,
    Completion,
    Kind,
    Outcome,
    Usage,
)
from tests.engines import Bench, FixedJudge, card, tier
from tests.ledgers import Clock

BLOCK = 16
BLOCKS = CacheCard(kind="blocks", block=BLOCK)
MINUTES = CacheCard(kind="ttl", ttl_seconds=300.0)
SYSTEM = {"role": "system", "content": "You are a careful clerk of the old school. " * 60}
ONLY_SMALL = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))


def written(request):
    """A prompt as the model's chat template writes it."""
    said = [f"<{m['role']}>{m['content']}<end>" for m in request.messages]
    return "".join([*said, "<assistant>"])


class Letters(Tokenizer):
    """A token is a letter."""

    async def count(self, request):
        return len(written(request))

    async def ids(self, request):
        return list(map(ord, written(request)))

    async def text_ids(self, text):
        return list(map(ord, text))


class Server(Backend):
    """A model's server that keeps full blocks, and says how much of a prompt it found there."""

    def __init__(self, *, down=False):
        self.down = down
        self.kept = []

    async def stream(self, request):
        if self.down:
            raise BackendUnreachableError("down")
        prompt = written(request)
        found = self._found(prompt)
        answer = f"It is {len(request.messages)} of them, as far as can be seen from here. " * 3
        yield Chunk(choices=[{"index": 0, "delta": {"content": answer}}], model="m")
        whole = Completion(
            choices=[Choice(text=answer, finish_reason="stop")],
            model="m",
            usage=Usage(input=len(prompt) - found, cache_read=found, output=50),
        )
        self.kept.append(prompt + answer)
        yield Chunk(completion=whole)

    def _found(self, prompt):
        """Tokens of the full blocks that some call has left; never the prompt's last token."""
        whole = (len(prompt) - 1) // BLOCK * BLOCK
        ends = (
            end
            for end in range(whole, 0, -BLOCK)
            if any(
                kept[: len(kept) // BLOCK * BLOCK].startswith(prompt[:end]) for kept in self.kept
            )
        )
        return next(ends, 0)


class Talk:
    """A conversation that goes on with what was answered."""

    def __init__(self, bench, session="s", system=SYSTEM, **values):
        self.bench, self.values = bench, {"session": session, **values}
        self.messages = [system]

    def ask(self, text):
        self.messages = [*self.messages, {"role": "user", "content": text}]
        return ChatRequest(id=text, messages=self.messages, **self.values)

    async def turn(self, text):
        result = await self.bench.run(self.ask(text))
        if result.completion is not None:
            said = {"role": "assistant", "content": result.completion.text}
            self.messages = [*self.messages, said]
        return result


def served(name, *, server=None, **claims):
    prices = {"small": card("1", "0.1", "2"), "large": card("10", "1", "20")}[name]
    made = tier(name, prices=prices, **{"cache": BLOCKS, "tokenizer": Letters(), **claims})
    return replace(made, backend=server or Server())


def answers(result):
    return [a for a in result.attempts if a.kind is Kind.ANSWER]


async def test_what_is_quoted_as_warm_is_what_the_server_then_reports():
    scores = [0.9, 0.1, 0.9, 0.1, 0.1, 0.9]
    bench = Bench(served("small"), served("large"), judge=FixedJudge(*scores))
    talks = [Talk(bench, "a"), Talk(bench, "b"), Talk(bench, "c", system=ask_only())]
    calls = []
    for number in range(12):
        result = await talks[number % 3].turn(f"Question {number}: what of the third item?")
        calls += answers(result)
    told = [(call.quote.warm_tokens, call.quote.cold_tokens) for call in calls]
    came = [(c.completion.usage.cache_read, c.completion.usage.input) for c in calls]
    assert told == came
    assert {call.step.tier for call in calls} == {"small", "large"}
    assert sum(warm > 0 for warm, _ in told) > 8


def ask_only():
    return {"role": "system", "content": "Be brief."}


async def test_the_premium_that_is_quoted_is_the_one_that_is_paid():
    bench = Bench(served("small"), served("large"), judge=FixedJudge(0.1))
    talk = Talk(bench)
    calls = [call for text in ("first", "second") for call in answers(await talk.turn(text))]
    assert [call.quote.cold_premium for call in calls] == [call.cold_premium for call in calls]
    # The bill differs by the answer's length only, which nobody knows before.
    for call in calls:
        output = call.quote.expected_output_tokens * (call.cost.output / 50)
        assert call.quote.dollars - output == call.cost.total - call.cost.output


async def test_a_model_that_was_not_asked_is_cold_when_the_conversation_comes_to_it():
    bench = Bench(served("small"), served("large"), judge=FixedJudge(0.9, 0.1))
    talk = Talk(bench)
    await talk.turn("first")
    small, large = answers(await talk.turn("second"))
    assert small.quote.warm_tokens > 600
    assert large.quote.warm_tokens == 0
    assert large.quote.cold_tokens == small.quote.warm_tokens + small.quote.cold_tokens


@pytest.mark.parametrize("ahead", [True, False])
async def test_what_went_ahead_neither_warms_the_dearest_tier_alone_nor_is_a_turn(ahead):
    bench = Bench(served("small"), served("large"), judge=FixedJudge(0.1, 0.9))
    await Talk(bench).turn("first")
    went_up = bench.engine.sessions.recall(Talk(bench).ask("second")).escalation
    asked = Talk(bench, system=ask_only()).ask("third " * 400)
    await bench.run(replace(asked, id="ahead", prewarm=ahead))
    later = bench.engine.sessions.recall(asked).escalation
    assert (later == went_up) is ahead
    cold = await Bench(served("small"), served("large"), judge=FixedJudge(0.9)).run(asked)
    assert ((await bench.run(asked)).baseline == cold.baseline) is ahead


async def test_a_cache_that_lost_what_was_there_is_believed():
    server = Server()
    bench = Bench(served("small", server=server), arm=ONLY_SMALL)
    other = {"role": "system", "content": "Quite another beginning, of another tenant. " * 60}
    one, two = Talk(bench, "a"), Talk(bench, "b", system=other)
    await one.turn("first")
    await two.turn("first")
    server.kept.clear()
    [wrong] = answers(await two.turn("second"))
    assert wrong.quote.warm_tokens > 600 > wrong.completion.usage.cache_read
    [right] = answers(await one.turn("second"))
    assert right.quote.warm_tokens == right.completion.usage.cache_read == 0


async def test_a_client_that_leaves_in_the_middle_of_an_answer_has_warmed_its_prompt():
    bench = Bench(served("small"), arm=ONLY_SMALL)
    asked = Talk(bench).ask("first")
    async with aclosing(bench.engine.events(asked, bench.arm)) as events:
        async for event in events:
            if isinstance(event, Delta):
                break
    [left] = bench.sink.results
    assert left.cancelled
    [call] = left.attempts
    assert call.usage_estimated
    assert call.completion.usage.prompt == call.quote.cold_tokens
    [again] = answers(await Talk(bench, "other").turn("first"))
    assert again.quote.warm_tokens > 600
    assert bench.engine.forecast.recall(asked).served_by == ""


async def test_a_tier_that_failed_is_as_cold_as_before_and_did_not_serve_the_session():
    down = Server(down=True)
    bench = Bench(served("small", server=down), served("large"), judge=FixedJudge(0.9))
    talk = Talk(bench)
    await talk.turn("first")
    down.down = False
    [small] = answers(await talk.turn("second"))
    assert (small.step.tier, small.quote.warm_tokens) == ("small", 0)
    assert small.completion.usage.cache_read == 0
    served_by = [r.request.served_by for r in bench.sink.results]
    assert served_by == ["", "large"]


async def test_an_answer_that_broke_off_leaves_its_prompt_warm():
    cut = ScriptedBackend(answers=[Script(text="a b c", cut_after=2), Script(text="a")])
    small = replace(served("small"), backend=cut)
    bench = Bench(small, served("large"), judge=FixedJudge(0.9))
    first, _ = answers(await bench.run(Talk(bench).ask("first")))
    assert first.outcome is Outcome.BACKEND_ERROR
    [again] = answers(await bench.run(Talk(bench).ask("first")))
    assert again.quote.warm_tokens > 600


async def test_a_prefix_that_a_tenant_shares_is_credited_once_others_came_with_it():
    bench = Bench(served("small"), served("large"), judge=FixedJudge(0.9, 0.9, 0.9, 0.1))
    first = await Talk(bench, "a").turn("first")
    assert answers(first)[0].quote.credit == 0
    for name in "bc":
        await Talk(bench, name).turn("first")
    _, large = answers(await Talk(bench, "d").turn("first"))
    assert 0 < large.quote.credit < large.quote.cold_premium
    assert large.quote.price == pytest.approx(float(large.quote.dollars - large.quote.credit))
    elsewhere = await Talk(bench, "e", tenant="other").turn("first")
    assert [call.quote.credit for call in answers(elsewhere)] == [0, 0]


async def test_a_tier_that_keeps_tenants_apart_is_cold_for_another_tenant():
    apart, together = served("small", salted=True), served("large")
    bench = Bench(apart, together, judge=FixedJudge(0.1))
    await Talk(bench, "a", tenant="acme").turn("first")
    small, large = answers(await Talk(bench, "a", tenant="other").turn("first"))
    assert small.quote.warm_tokens == 0
    assert large.quote.warm_tokens > 600


async def test_a_policy_that_weighs_dollars_says_what_a_turn_wanted():
    """The large tier is never worth its price, so warming it is not either."""
    policy = UtilityPolicy(
        name="u", tiers=[{"tier": "small"}, {"tier": "large"}], quality_usd=0.000001
    )
    tiers = (served("small", cache=MINUTES), served("large", cache=MINUTES))
    bench, clock = Bench(*tiers, arm=Arm(name=None, policy=policy)), Clock()
    bench.engine.forecast = Forecast(bench.engine.snapshot.tiers, clock=clock)
    for number in range(150):
        clock.wait(600.0)
        result = await Talk(bench, str(number)).turn("first")
    [call] = answers(result)
    assert call.step.tier == "small"
    asked = Talk(bench, "last").ask("first")
    reading = await bench.engine.forecast.read(asked, ["small", "large"], counted=())
    small, large = bench.engine.forecast.quotes(asked, reading, policy.steps)
    assert large.credit < large.cold_premium / 20
    assert small.shared.premium > 0


class Asked(Tokenizer):
    """Keeps what it was asked, and cannot tell."""

    def __init__(self):
        self.seen = []

    async def count(self, request):
        return None

    async def ids(self, request):
        self.seen.append(request)

    async def text_ids(self, text):
        return None


@pytest.mark.parametrize("cooling", [False, True])
async def test_a_tier_that_is_left_alone_is_not_asked_to_cut_prompts_either(cooling):
    tokenizer = Asked()
    small = served("small", tokenizer=tokenizer, cooling=lambda: cooling)
    await Bench(small, arm=ONLY_SMALL).run(Talk(None).ask("first"))
    assert bool(tokenizer.seen) is not cooling


async def test_only_tiers_that_the_policy_may_ask_and_that_have_a_cache_cut_the_prompt():
    with_cache, without = Asked(), Asked()
    tiers = (
        served("small", tokenizer=without, cache=None),
        served("large", tokenizer=with_cache),
    )
    for arm, asked in (
        (ONLY_SMALL, 0),
        (Arm(name=None, policy=FixedPolicy(name="g", tier="large")), 1),
    ):
        await Bench(*tiers, arm=arm).run(Talk(None).ask("first"))
        assert (len(without.seen), len(with_cache.seen)) == (0, asked)
