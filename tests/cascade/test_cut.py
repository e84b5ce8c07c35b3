"""What a call that was cut used and cost."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cascade.answers import tokens
from cascade.audit import record
from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendConnectionError, BackendServerError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.pricing import PriceCard, Rates
from cascade.protocols import Backend
from cascade.result import AttemptStarted, CascadeResult, Delta
from cascade.types import FREE, ChatRequest, Chunk, Completion, Cost, Outcome
from tests.engines import Bench, FixedJudge, request, tier

M = Decimal(1_000_000)
ONLY_SMALL = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
LONG = request("x" * 3996)
"""A prompt that is quoted as 1,000 tokens."""


async def leave(bench: Bench, backend: ScriptedBackend, *, after: float) -> CascadeResult:
    """The audited result of a client that leaves while the model is at work."""
    task = asyncio.create_task(bench.run(LONG))
    while not backend.requests:
        await asyncio.sleep(0)
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = bench.sink.results
    return result


def piece(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "delta": {"content": text}, **more}]


def scored(*words: str) -> list[dict[str, Any]]:
    entries = [{"token": word, "logprob": -0.1} for word in words]
    return piece("".join(words), logprobs={"content": entries})


@pytest.mark.parametrize(
    ("chunks", "count"),
    [
        ([], 0),
        ([piece("")], 0),
        ([piece("one"), piece(" two"), piece("")], 2),
        ([piece(" understandably")], 4),  # one long piece looks like several tokens
        ([piece(" a"), piece(" b"), piece(" understandably")], 3),
        ([piece("x" * 400)], 100),
        ([piece("x" * 401)], 101),
        ([scored("a", "b"), scored("c")], 3),
        ([scored("a", "b"), piece("c")], 3),
        ([[{"delta": {"reasoning_content": "hm"}}], [{"delta": {"role": "assistant"}}]], 1),
        (
            [
                [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]
                for text in ('{"a', '": 1', "}")
            ],
            3,
        ),
        ([[{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]], 2),
        ([[{"delta": None, "finish_reason": "stop"}]], 0),
    ],
)
def test_tokens_are_counted_from_what_came(chunks, count):
    assert tokens(chunks) == count


async def test_a_client_that_leaves_pays_for_the_prompt_and_for_what_came():
    small = tier("small", Script(text="a b c d", token_seconds=0.0))
    events = Bench(small, arm=ONLY_SMALL)
    stream = events.engine.events(LONG, ONLY_SMALL)
    seen = 0
    async for event in stream:
        seen += isinstance(event, Delta)
        if seen == 3:
            break
    await stream.aclose()
    [result] = events.sink.results
    [attempt] = result.attempts
    assert attempt.outcome is Outcome.CANCELLED
    assert (attempt.completion.text, attempt.completion.partial) == ("a b c", True)
    assert (attempt.completion.tier, attempt.completion.model) == ("small", "small-model")
    assert attempt.cost == Cost(input=1000 / M, output=6 / M)
    assert attempt.usage_estimated
    assert result.cost == attempt.cost
    [row] = record(result).attempts
    assert (row.input_tokens, row.output_tokens, row.usage_estimated) == (1000, 3, True)
    assert row.cost_pico == 1_006_000_000


async def test_a_client_that_leaves_before_the_first_token_pays_for_the_prompt():
    backend = ScriptedBackend(answers=[Script(text="a b", first_token_seconds=30)])
    bench = Bench(replace(tier("small"), backend=backend), arm=ONLY_SMALL)
    result = await leave(bench, backend, after=0.0)
    [attempt] = result.attempts
    assert attempt.cost == Cost(input=1000 / M)
    assert attempt.completion.partial
    assert attempt.completion.usage.output == 0
    assert attempt.usage_estimated
    assert attempt.first_token_seconds is None


async def test_a_client_that_leaves_before_the_model_was_asked_pays_nothing():
    backend = ScriptedBackend()
    bench = Bench(replace(tier("small"), backend=backend), arm=ONLY_SMALL)
    events = bench.engine.events(LONG, ONLY_SMALL)
    async for event in events:
        assert isinstance(event, AttemptStarted)
        break
    await events.aclose()
    [result] = bench.sink.results
    assert not backend.requests
    assert (result.cost, result.attempts[0].completion) == (FREE, None)
    assert not result.attempts[0].usage_estimated


async def test_what_the_model_had_reported_is_taken_before_any_estimate():
    class Lingering(ScriptedBackend):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
            async for chunk in super().stream(request):
                yield chunk
            await asyncio.sleep(30)

    backend = Lingering(answers=["a b"])
    bench = Bench(replace(tier("small"), backend=backend), arm=ONLY_SMALL)
    result = await leave(bench, backend, after=0.01)
    [attempt] = result.attempts
    assert attempt.outcome is Outcome.CANCELLED
    assert (attempt.completion.usage.input, attempt.completion.usage.output) == (10, 2)
    assert attempt.cost == Cost(input=10 / M, output=4 / M)
    assert not attempt.usage_estimated


async def test_a_cut_answer_is_paid_for_and_so_is_the_one_that_replaces_it():
    small = tier("small", Script(text="a b c", cut_after=2))
    result = await Bench(small, tier("large", "d"), judge=FixedJudge(0.9)).run(LONG)
    cut, whole = result.attempts[0], result.attempts[-1]
    assert (cut.outcome, cut.error.code) == (Outcome.BACKEND_ERROR, "upstream_connection")
    assert cut.cost == Cost(input=1000 / M, output=4 / M)
    assert not whole.usage_estimated
    assert result.cost == cut.cost + whole.cost


async def test_log_probabilities_tell_the_tokens_of_a_cut_answer():
    class Coalescing(Backend):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
            yield Chunk(choices=scored(*"abcdefghij"))
            raise BackendConnectionError("cut")

    judge = FixedJudge(0.9, logprobs=True)
    small = replace(tier("small"), backend=Coalescing())
    result = await Bench(small, tier("large"), judge=judge).run(LONG)
    assert result.attempts[0].completion.usage.output == 10


async def test_an_error_that_is_free_before_the_answer_is_not_free_within_it():
    class Failing(Backend):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
            yield Chunk(choices=piece("a"))
            raise BackendServerError("error in the stream")

    small = replace(tier("small"), backend=Failing())
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run(LONG)
    assert result.attempts[0].cost == Cost(input=1000 / M, output=2 / M)


async def test_without_a_price_the_tokens_are_estimated_and_the_cost_is_unknown():
    unpriced = replace(
        tier("small", Script(text="a b", cut_after=1)), prices=PriceCard(rates=Rates())
    )
    result = await Bench(unpriced, tier("large"), judge=FixedJudge(0.9)).run(LONG)
    cut = result.attempts[0]
    assert cut.cost is None
    assert (cut.completion.usage.input, cut.completion.usage.output) == (1000, 1)
    assert cut.usage_estimated
    assert result.cost is None


async def test_tries_that_may_have_cost_leave_the_cost_of_a_cut_call_open():
    class TwiceCut(Backend):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
            yield Chunk(choices=piece("a"))
            error = BackendConnectionError("cut")
            error.tries, error.unreported_tries = 2, 1
            raise error

    small = replace(tier("small"), backend=TwiceCut())
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run(LONG)
    cut = result.attempts[0]
    assert (cut.completion.tries, cut.completion.unreported_tries) == (2, 1)
    assert (cut.cost, result.cost) == (None, None)


async def test_a_completion_without_usage_is_estimated_when_it_is_cut_off_too():
    class Silent(ScriptedBackend):
        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
            self.requests.append(request)
            yield Chunk(choices=piece("a"))
            yield Chunk(completion=Completion(choices=()))
            await asyncio.sleep(30)

    backend = Silent()
    bench = Bench(replace(tier("small"), backend=backend), arm=ONLY_SMALL)
    result = await leave(bench, backend, after=0.01)
    assert result.attempts[0].usage_estimated
    assert result.attempts[0].completion.usage.output == 1
