import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade import errors
from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.retry import RetryingBackend
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendError,
    BackendOverloadedError,
    BackendTimeoutError,
    BackendUnreachableError,
)
from cascade.protocols import Backend
from cascade.types import FREE, ChatRequest, Chunk, Completion
from tests.engines import Bench, FixedJudge, request, tier
from tests.guards import RETRIES, Clock, retrying

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, BackendError)
]


class Failing(Backend):
    """Raises these errors, in order; then plays an answer."""

    def __init__(self, *faults: BackendError) -> None:
        self.faults = list(faults)
        self.calls = 0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        self.calls += 1
        if self.faults:
            raise self.faults.pop(0)
        async for chunk in ScriptedBackend().stream(request):
            yield chunk


async def failure(backend: Backend) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await backend.complete(request())
    return caught.value


async def test_a_fault_that_passes_is_not_seen():
    inner = Failing(BackendUnreachableError("no"), BackendUnreachableError("no"))
    clock = Clock()
    assert (await retrying(inner, clock).complete(request())).text == "ok"
    assert inner.calls == 3
    assert clock.slept == [1.0, 2.0]


async def test_the_last_error_says_how_many_tries_there_were():
    inner = ScriptedBackend(answers=[Script(error="BackendServerError")])
    error = await failure(retrying(inner))
    assert error.message == str(error) == "BackendServerError, as scripted (after 3 tries)"
    assert len(inner.requests) == 3


async def test_the_number_of_tries_is_in_the_audited_attempt():
    down = ScriptedBackend(answers=[Script(error="BackendServerError")])
    bench = Bench(
        replace(tier("small"), backend=retrying(down)), tier("large"), judge=FixedJudge(0.9)
    )
    result = await bench.run()
    assert result.completion.tier == "large"
    assert result.attempts[0].error.message.endswith("(after 3 tries)")


@pytest.mark.parametrize("kind", KINDS)
async def test_only_what_can_help_is_tried_again(kind):
    inner = ScriptedBackend(answers=[Script(error=kind.__name__), "ok"])
    if kind.retryable:
        assert (await retrying(inner).complete(request())).text == "ok"
        assert len(inner.requests) == 2
    else:
        error = await failure(retrying(inner))
        assert "tries" not in error.message
        assert len(inner.requests) == 1


async def test_a_bug_is_not_tried_again():
    class Broken(ScriptedBackend):
        async def stream(self, request):
            self.requests.append(request)
            raise ZeroDivisionError
            yield

    inner = Broken()
    with pytest.raises(ZeroDivisionError):
        await retrying(inner).complete(request())
    assert len(inner.requests) == 1


async def test_nothing_is_tried_again_once_text_went_out():
    inner = ScriptedBackend(answers=[Script(text="a b", cut_after=1), "c"])
    seen = []
    with pytest.raises(BackendConnectionError):
        await _read(retrying(inner), seen)
    assert [piece["delta"]["content"] for chunk in seen for piece in chunk.choices] == ["a"]
    assert len(inner.requests) == 1


@pytest.mark.parametrize(
    ("delta", "tries"),
    [
        ({"role": "assistant"}, 2),
        ({"role": "assistant", "content": ""}, 2),
        ({"content": "a"}, 1),
        ({"tool_calls": [{"index": 0}]}, 1),
        ({"reasoning_content": "hm"}, 1),
        (None, 1),
    ],
)
async def test_a_role_is_no_text_and_a_finish_is_an_answer(delta, tries):
    piece = {"delta": {}, "finish_reason": "stop"} if delta is None else {"delta": delta}

    class Cut(Failing):
        async def stream(self, request):
            if not self.calls:
                self.calls += 1
                yield Chunk(choices=[piece])
                raise BackendConnectionError("cut")
            async for chunk in super().stream(request):
                yield chunk

    inner, seen = Cut(), []
    if tries == 2:
        await _read(retrying(inner), seen)
        assert seen[-1].completion.text == "ok"
    else:
        with pytest.raises(BackendConnectionError):
            await _read(retrying(inner), seen)
    assert inner.calls == tries


async def test_a_retry_after_is_waited_for_and_jitter_comes_on_top():
    clock = Clock()
    inner = Failing(BackendOverloadedError("busy", retry_after=7.0))
    await retrying(inner, clock, chance=0.5).complete(request())
    assert clock.slept == [7.5]


async def test_a_retry_after_that_is_too_long_is_not_waited_for_and_not_lost():
    clock = Clock()
    inner = Failing(BackendOverloadedError("busy", retry_after=10.5))
    assert (await failure(retrying(inner, clock))).retry_after == 10.5
    assert clock.slept == []


async def test_no_try_begins_later_than_it_may():
    clock = Clock()

    class Slow(Failing):
        async def stream(self, request):
            clock.pass_(40.0)
            async for chunk in super().stream(request):
                yield chunk

    inner = Slow(BackendTimeoutError("slow"), BackendTimeoutError("slow"))
    assert (await failure(retrying(inner, clock))).message == "slow (after 2 tries)"
    assert inner.calls == 2


async def test_what_an_earlier_try_may_have_cost_is_not_forgotten():
    inner = Failing(BackendTimeoutError("slow"), BackendAuthError("no"))
    error = await failure(retrying(inner))
    assert (error.tries, error.unreported_tries, error.may_have_cost) == (2, 1, False)
    small = replace(tier("small"), backend=retrying(Failing(BackendTimeoutError("slow"), error)))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert (result.attempts[0].cost, result.cost) == (None, None)


async def test_tries_that_cannot_have_cost_leave_the_call_free():
    inner = Failing(BackendUnreachableError("no"), BackendAuthError("no"))
    error = await failure(retrying(inner))
    assert (error.tries, error.unreported_tries) == (2, 0)
    inner = Failing(BackendUnreachableError("no"), BackendAuthError("no"))
    small = replace(tier("small"), backend=retrying(inner))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cost == FREE


@pytest.mark.parametrize(
    ("faults", "tries", "unreported", "known"),
    [
        ([], 1, 0, True),
        ([BackendUnreachableError("no")], 2, 0, True),
        ([BackendTimeoutError("slow"), BackendUnreachableError("no")], 3, 1, False),
    ],
)
async def test_an_answer_after_a_try_that_may_have_cost_has_no_known_cost(
    faults, tries, unreported, known
):
    small = replace(tier("small"), backend=retrying(Failing(*faults)))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert (result.completion.tries, result.completion.unreported_tries) == (tries, unreported)
    assert result.completion.usage.output == 2
    assert (result.attempts[0].cost is not None) is known
    assert result.attempts[0].cost != FREE


async def test_who_leaves_while_a_retry_is_waited_for_is_gone():
    waiting = asyncio.Event()

    async def sleep(_):
        waiting.set()
        await asyncio.Event().wait()

    inner = ScriptedBackend(answers=[Script(error="BackendServerError")])
    backend = RetryingBackend(inner, RETRIES, sleep=sleep)
    task = asyncio.create_task(backend.complete(request()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(inner.requests) == 1


async def test_closing_closes_the_inner_backend():
    inner = ScriptedBackend()
    await retrying(inner).aclose()
    assert inner.closed


@given(
    names=st.lists(st.sampled_from([kind.__name__ for kind in KINDS]), max_size=6),
    times=st.integers(1, 5),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_tries_and_waits_stay_within_their_bounds(names, times, chance):
    scripts = [Script(error=name) for name in names]
    inner, clock = ScriptedBackend(answers=[*scripts, "ok"]), Clock()
    backend = retrying(inner, clock, times=times, chance=chance)
    answered = asyncio.run(_answers(backend))
    tries = len(inner.requests)
    last = getattr(errors, names[tries - 1]) if tries <= len(names) else None
    assert tries <= times + 1
    assert answered is (last is None)
    assert answered or tries == times + 1 or not last.retryable
    assert all(getattr(errors, name).retryable for name in names[: tries - 1])
    assert clock.slept == [chance * min(3.0, 2.0**i) for i in range(tries - 1)]


async def _answers(backend: Backend) -> bool:
    try:
        return isinstance(await backend.complete(request()), Completion)
    except BackendError:
        return False


async def _read(backend, into):
    async for chunk in backend.stream(request()):
        into.append(chunk)  # what came before an error is looked at
