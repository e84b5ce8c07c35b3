import asyncio
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendBusyError, BackendConnectionError, BackendServerError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Choice, Chunk, Completion
from tests.engines import request
from tests.guards import Clock, limited


class Gated(Backend):
    """Each call is answered, or fails, when the test says so."""

    def __init__(self) -> None:
        self.flying: dict[str, asyncio.Future[None]] = {}
        self.began: list[str] = []
        self.most = 0

    async def stream(self, request: ChatRequest):
        gate = asyncio.get_running_loop().create_future()
        self.flying[request.id] = gate
        self.began.append(request.id)
        self.most = max(self.most, len(self.flying))
        try:
            yield Chunk(choices=[{"delta": {"content": "a"}}])
            await gate
            yield Chunk(completion=Completion(choices=[Choice(text="a")]))
        finally:
            del self.flying[request.id]


def named(name):
    return ChatRequest(id=str(name), messages=())


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def start(backend, *names):
    return [asyncio.create_task(backend.complete(named(name))) for name in names]


async def end(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_no_more_calls_are_in_flight_than_allowed_and_the_rest_wait_their_turn():
    inner = Gated()
    tasks = start(limited(inner), 1, 2, 3, 4, 5)
    await settle()
    assert inner.began == ["1", "2"]
    for name in ("2", "1", "3", "4", "5"):
        inner.flying[name].set_result(None)
        await settle()
    assert inner.began == ["1", "2", "3", "4", "5"]
    assert inner.most == 2
    assert [(await task).text for task in tasks] == ["a"] * 5


async def test_a_call_that_finds_the_queue_full_is_told_so_at_once():
    inner = Gated()
    backend = limited(inner)
    tasks = start(backend, 1, 2, 3, 4, 5)
    await settle()
    with pytest.raises(BackendBusyError, match="2 in flight, 3 waiting"):
        await backend.complete(named(6))
    await end(tasks)


async def test_a_queue_of_none_lets_nobody_wait():
    inner = Gated()
    backend = limited(inner, waiting=0)
    tasks = start(backend, 1, 2)
    await settle()
    with pytest.raises(BackendBusyError):
        await backend.complete(named(3))
    await end(tasks)


async def test_a_call_that_waits_too_long_is_told_so_and_leaves_the_queue():
    inner = Gated()
    backend = limited(inner, concurrent=1, waiting=1, wait_seconds=0.01)
    tasks = start(backend, 1)
    await settle()
    for _ in range(3):
        with pytest.raises(BackendBusyError, match=r"no call ended within 0\.01 s"):
            await backend.complete(named(2))
    assert inner.began == ["1"]
    await end(tasks)


async def test_the_wait_until_there_is_room_is_estimated_from_recent_calls():
    inner, clock = Gated(), Clock()
    backend = limited(inner, clock)
    for seconds in (4.0, 8.0):
        [task] = start(backend, "first")
        await settle()
        clock.pass_(seconds)
        inner.flying["first"].set_result(None)
        await task
    tasks = start(backend, 1, 2, 3, 4, 5)
    await settle()
    with pytest.raises(BackendBusyError) as caught:
        await backend.complete(named(6))
    assert caught.value.retry_after == 6.0 * 4 / 2
    await end(tasks)


async def test_without_recent_calls_the_longest_wait_is_what_is_said():
    inner = Gated()
    backend = limited(inner, waiting=0)
    tasks = start(backend, 1, 2)
    await settle()
    with pytest.raises(BackendBusyError) as caught:
        await backend.complete(named(3))
    assert caught.value.retry_after == 5.0
    await end(tasks)


async def test_a_cancelled_waiter_leaves_the_queue_and_the_next_moves_up():
    inner = Gated()
    backend = limited(inner, concurrent=1, waiting=2)
    first, second, third = start(backend, 1, 2, 3)
    await settle()
    await end([second])
    [fourth] = start(backend, 4)
    await settle()
    inner.flying["1"].set_result(None)
    await settle()
    assert inner.began == ["1", "3"]
    inner.flying["3"].set_result(None)
    await settle()
    assert inner.began == ["1", "3", "4"]
    await end([first, third, fourth])


async def test_a_waiter_cancelled_as_its_turn_comes_loses_no_slot():
    inner = Gated()
    backend = limited(inner, concurrent=1)
    first, second = start(backend, 1, 2)
    await settle()
    inner.flying["1"].set_result(None)
    while not first.done():
        await asyncio.sleep(0)
    await end([second])
    [third] = start(backend, 3)
    await settle()
    assert inner.began[-1] == "3"
    await end([third])


async def test_a_slot_is_free_again_however_the_call_ends():
    backend = limited(
        ScriptedBackend(
            answers=["a b", Script(error="BackendServerError"), Script(cut_after=0), "a b", "c"]
        ),
        concurrent=1,
        waiting=0,
    )
    assert (await backend.complete(request())).text == "a b"
    with pytest.raises(BackendServerError):
        await backend.complete(request())
    with pytest.raises(BackendConnectionError):
        await backend.complete(request())
    async with aclosing(backend.stream(request())) as chunks:
        async for _ in chunks:
            break
    assert (await backend.complete(request())).text == "c"


async def test_a_stream_that_is_never_read_takes_no_slot():
    backend = limited(ScriptedBackend(), concurrent=1, waiting=0)
    stream = backend.stream(request())
    assert (await backend.complete(request())).text == "ok"
    await stream.aclose()
    assert (await backend.complete(request())).text == "ok"


async def test_closing_closes_the_inner_backend():
    inner = ScriptedBackend()
    await limited(inner).aclose()
    assert inner.closed


WHAT_HAPPENS = st.lists(
    st.tuples(st.sampled_from(["start", "start", "answer", "fail", "cancel"]), st.integers(0, 99)),
    max_size=40,
)


@given(what=WHAT_HAPPENS, concurrent=st.integers(1, 3), waiting=st.integers(0, 4))
def test_whatever_happens_the_limits_hold_and_nobody_is_overtaken(what, concurrent, waiting):
    asyncio.run(_play(what, concurrent, waiting))


async def _play(what, concurrent, waiting):
    inner = Gated()
    backend = limited(inner, concurrent=concurrent, waiting=waiting, wait_seconds=60.0)
    tasks, turned_away = {}, set()
    for number, (action, pick) in enumerate(what):
        pending = [name for name, task in tasks.items() if not task.done()]
        if action == "start":
            queued = len(pending) - len(inner.flying)
            [tasks[str(number)]] = start(backend, number)
            if len(inner.flying) == concurrent and queued == waiting:
                turned_away.add(str(number))
        elif action == "cancel" and pending:
            tasks[pending[pick % len(pending)]].cancel()
        elif action in {"answer", "fail"} and inner.flying:
            gate = list(inner.flying.values())[pick % len(inner.flying)]
            gate.set_result(None) if action == "answer" else gate.set_exception(
                BackendServerError("no")
            )
        await settle()
        pending = [name for name, task in tasks.items() if not task.done()]
        assert list(inner.flying) == pending[: len(inner.flying)]
        assert len(inner.flying) == min(concurrent, len(pending))
        assert len(pending) - len(inner.flying) <= waiting
    assert inner.began == sorted(inner.began, key=int)
    assert {name for name, task in tasks.items() if _busy(task)} == turned_away
    await end(tasks.values())
    again = start(backend, *range(1000, 1000 + concurrent))
    await settle()
    assert len(inner.flying) == concurrent
    await end(again)


def _busy(task):
    if not task.done() or task.cancelled():
        return False
    return isinstance(task.exception(), BackendBusyError)


async def test_an_answer_says_how_long_it_waited_for_its_turn():
    inner, clock = Gated(), Clock()
    tasks = start(limited(inner, clock), 1, 2, 3)
    await settle()
    clock.pass_(1.5)
    for name in ("1", "2", "3"):
        inner.flying[name].set_result(None)
        await settle()
    assert [(await task).queued_seconds for task in tasks] == [0.0, 0.0, 1.5]


async def test_a_call_that_waited_in_vain_says_for_how_long_and_one_turned_away_says_nothing():
    inner, clock = Gated(), Clock()
    backend = limited(inner, clock, waiting=1, wait_seconds=0.02)
    tasks = start(backend, 1, 2, 3)
    await settle()
    with pytest.raises(BackendBusyError) as refused:
        await backend.complete(named(4))
    assert refused.value.queued_seconds is None
    clock.pass_(3.0)
    with pytest.raises(BackendBusyError) as waited:
        await tasks[2]
    assert waited.value.queued_seconds == 3.0
    await end(tasks)


async def test_a_call_that_failed_after_its_wait_says_so_too():
    inner, clock = Gated(), Clock()
    tasks = start(limited(inner, clock, concurrent=1), 1, 2)
    await settle()
    clock.pass_(2.0)
    inner.flying["1"].set_result(None)
    await settle()
    inner.flying["2"].set_exception(BackendServerError("no"))
    with pytest.raises(BackendServerError) as failed:
        await tasks[1]
    assert failed.value.queued_seconds == 2.0
    await end(tasks)
