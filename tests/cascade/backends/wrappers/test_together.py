from dataclasses import replace

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendCoolingDownError, BackendServerError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.types import FREE, Outcome
from tests.engines import Bench, FixedJudge, request, tier
from tests.guards import Clock, cooling, guarded, retrying
from tests.upstream import DONE, Upstream, event, serving, words


def bench_with_small_behind(backend):
    small = replace(tier("small"), backend=backend)
    return Bench(small, tier("large", "four"), judge=FixedJudge(0.9))


async def test_a_small_tier_that_is_down_is_asked_a_few_times_and_then_costs_nothing():
    clock = Clock()
    down = ScriptedBackend(answers=[Script(error="BackendUnreachableError")])
    bench = bench_with_small_behind(guarded(down, clock))
    results = [await bench.run() for _ in range(100)]
    assert {result.completion.text for result in results} == {"four"}
    assert len(down.requests) == 4
    assert clock.slept == [1.0, 2.0, 1.0]
    cheap = results[2:]
    assert {result.attempts[0].error.type for result in cheap} == {"BackendCoolingDownError"}
    assert {result.attempts[0].outcome for result in cheap} == {Outcome.BACKEND_ERROR}
    assert {result.attempts[0].cost for result in cheap} == {FREE}
    assert min(result.attempts[0].seconds for result in cheap) < 0.001


async def test_no_connection_is_tried_while_a_server_cools_and_it_is_found_again():
    clock = Clock()
    pieces = [*words("one", usage={"prompt_tokens": 3, "completion_tokens": 1}), DONE]
    async with serving(Upstream(status=500)) as upstream:
        http = OpenAIHttpBackend(url=upstream.url, model="m")
        bench = bench_with_small_behind(guarded(http, clock))
        for _ in range(10):
            assert (await bench.run()).completion.tier == "large"
        assert len(upstream.bodies) == 4
        upstream.status, upstream.pieces = 200, pieces
        clock.pass_(8.0)
        for _ in range(3):
            assert (await bench.run()).completion.tier == "small"
        assert len(upstream.bodies) == 7
        await http.aclose()


async def test_every_try_counts_and_the_cool_down_ends_the_tries():
    down = ScriptedBackend(answers=[Script(error="BackendServerError")])
    backend = retrying(cooling(down, min_calls=2))
    with pytest.raises(BackendCoolingDownError, match=r"last fault: .*\(after 3 tries\)"):
        await backend.complete(request())
    assert len(down.requests) == 2


async def test_a_tier_that_answers_with_text_and_breaks_is_not_asked_twice():
    broken = [event({"choices": [{"index": 0, "delta": {"content": "a"}}]}), None]
    async with serving(Upstream(pieces=broken)) as upstream:
        http = OpenAIHttpBackend(url=upstream.url, model="m")
        arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
        bench = Bench(replace(tier("small"), backend=guarded(http)), arm=arm)
        *_, finished = await bench.events()
        assert finished.result.error.type == "StreamBrokenError"
        assert len(upstream.bodies) == 1
        await http.aclose()


async def test_a_full_queue_is_not_retried_but_left_to_the_next_tier():
    busy = ScriptedBackend(answers=[Script(error="BackendBusyError")])
    result = await bench_with_small_behind(guarded(busy)).run()
    assert result.completion.tier == "large"
    assert result.attempts[0].error.status == 429
    assert len(busy.requests) == 1


async def test_what_each_wrapper_adds_is_closed_with_the_backend():
    inner = ScriptedBackend(answers=[Script(error="BackendServerError")])
    backend = guarded(inner)
    with pytest.raises(BackendServerError):
        await backend.complete(request())
    await backend.aclose()
    assert inner.closed
