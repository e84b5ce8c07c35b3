import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.single_flight import (
    FanOut,
    RecentPrefixes,
    SingleFlightBackend,
)
from cascade.errors import BackendServerError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.protocols import Backend
from cascade.types import ChatRequest, Choice, Chunk, Completion
from tests.engines import Bench, tier
from tests.guards import Clock


class Staged(Backend):
    """Each call begins its answer, ends it or fails when the test says so."""

    def __init__(self):
        self.asked = []
        self.gates = {}
        self.closed = False

    async def stream(self, request):
        loop = asyncio.get_running_loop()
        begin, end = self.gates[request.id] = loop.create_future(), loop.create_future()
        self.asked.append(request.id)
        try:
            yield Chunk(choices=[{"delta": {"role": "assistant"}}])
            await begin
            yield Chunk(choices=[{"delta": {"content": "a"}}])
            await end
            yield Chunk(completion=Completion(choices=[Choice(text="a")]))
        finally:
            del self.gates[request.id]

    async def aclose(self):
        self.closed = True

    def begins(self, name):
        if not self.gates[name][0].done():
            self.gates[name][0].set_result(None)

    def ends(self, name):
        self.begins(name)
        if not self.gates[name][1].done():
            self.gates[name][1].set_result(None)

    def fails(self, name):
        for gate in self.gates[name]:
            if not gate.done():
                gate.set_exception(BackendServerError("no"))
                return


class Shared:
    """All requests share one cold prefix until told otherwise; what began is kept."""

    def __init__(self, tokens=2000):
        self.tokens = tokens
        self.told = []

    def __call__(self, request):
        return None if self.tokens is None else (request.model, self.tokens)

    def began(self, key):
        self.told.append(key)


def flights(inner, shared=None, *, wait_seconds=60.0):
    shared = shared or Shared()
    fan_out = FanOut(wait_seconds=wait_seconds, min_tokens=1024)
    return SingleFlightBackend(inner, fan_out, shared_prefix=shared, began=shared.began)


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def start(backend, *names, model="p"):
    return [
        asyncio.create_task(backend.complete(ChatRequest(id=str(name), model=model, messages=[])))
        for name in names
    ]


@asynccontextmanager
async def under_way(backend, *names, **fields):
    """Calls that have been made, and are over at the end."""
    tasks = start(backend, *names, **fields)
    await settle()
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_the_first_goes_and_the_rest_go_when_its_answer_begins():
    inner = Staged()
    shared = Shared()
    backend = flights(inner, shared)
    async with under_way(backend, 1, 2, 3) as tasks:
        assert inner.asked == ["1"]
        assert backend.waiting == 2
        inner.begins("1")
        await settle()
        assert inner.asked == ["1", "2", "3"]
        assert (backend.waiting, shared.told) == (0, ["p"])
        for name in "123":
            inner.ends(name)
        assert [each.text for each in await asyncio.gather(*tasks)] == ["a"] * 3


async def test_an_answer_says_how_long_it_waited_for_the_first_to_begin():
    inner, clock = Staged(), Clock()
    fan_out = FanOut(wait_seconds=60.0, min_tokens=1024)
    backend = SingleFlightBackend(inner, fan_out, shared_prefix=Shared(), clock=clock)
    async with under_way(backend, 1, 2) as tasks:
        clock.pass_(2.5)
        inner.ends("1")
        await settle()
        inner.ends("2")
        assert [each.queued_seconds for each in await asyncio.gather(*tasks)] == [0.0, 2.5]


async def test_a_chunk_with_nothing_but_the_role_is_no_beginning():
    inner = Staged()
    async with under_way(flights(inner), 1, 2):
        assert inner.asked == ["1"]


async def test_when_the_first_fails_the_next_goes_ahead_of_the_others():
    inner = Staged()
    async with under_way(flights(inner), 1, 2, 3) as tasks:
        inner.fails("1")
        await settle()
        assert inner.asked == ["1", "2"]
        with pytest.raises(BackendServerError):
            await tasks[0]
        inner.begins("2")
        await settle()
        assert inner.asked == ["1", "2", "3"]


async def test_when_the_client_of_the_first_leaves_the_next_goes_ahead():
    inner = Staged()
    async with under_way(flights(inner), 1, 2, 3) as tasks:
        tasks[0].cancel()
        await settle()
        assert inner.asked == ["1", "2"]


async def test_a_first_that_is_closed_unread_lets_the_next_go():
    inner = Staged()
    backend = flights(inner)
    stream = backend.stream(ChatRequest(id="0", model="p", messages=[]))
    await anext(stream)
    async with under_way(backend, 1):
        assert inner.asked == ["0"]
        await stream.aclose()
        await settle()
        assert inner.asked == ["0", "1"]


async def test_nobody_waits_longer_than_allowed_and_the_first_still_frees_the_rest():
    inner = Staged()
    backend = flights(inner, wait_seconds=0.02)
    async with under_way(backend, 1, 2):
        await asyncio.sleep(0.05)
        assert inner.asked == ["1", "2"]
        async with under_way(backend, 3):
            assert inner.asked == ["1", "2"]
            inner.begins("1")
            await settle()
            assert inner.asked == ["1", "2", "3"]


async def test_whoevers_answer_begins_first_frees_those_that_wait():
    inner = Staged()
    backend = flights(inner, wait_seconds=0.02)
    async with under_way(backend, 1, 2):
        await asyncio.sleep(0.05)
        async with under_way(backend, 3):
            inner.begins("2")
            await settle()
            assert inner.asked == ["1", "2", "3"]
            inner.fails("1")
            await settle()


async def test_a_waiting_client_that_leaves_frees_its_place():
    inner = Staged()
    backend = flights(inner)
    async with under_way(backend, 1, 2, 3) as tasks:
        tasks[1].cancel()
        await settle()
        assert backend.waiting == 1
        inner.fails("1")
        await settle()
        assert inner.asked == ["1", "3"]


async def test_a_client_that_leaves_as_it_is_to_go_ahead_lets_the_next_go():
    inner = Staged()
    async with under_way(flights(inner), 1, 2, 3) as tasks:
        inner.fails("1")
        while not tasks[0].done():
            await asyncio.sleep(0)
        tasks[1].cancel()
        await settle()
        assert inner.asked[-1] == "3"


async def test_requests_with_other_prefixes_do_not_wait():
    inner = Staged()
    backend = flights(inner)
    async with under_way(backend, 1), under_way(backend, 2, model="q"):
        assert inner.asked == ["1", "2"]


@pytest.mark.parametrize("tokens", [None, 1023])
async def test_nobody_waits_for_what_is_warm_or_short(tokens):
    inner = Staged()
    async with under_way(flights(inner, Shared(tokens)), 1, 2):
        assert inner.asked == ["1", "2"]


async def test_after_the_flight_the_next_cold_prefix_is_a_new_one():
    inner = Staged()
    backend = flights(inner)
    async with under_way(backend, 1):
        inner.ends("1")
        await settle()
        async with under_way(backend, 2, 3):
            assert inner.asked == ["1", "2"]


async def test_closing_closes_the_inner_backend():
    inner = Staged()
    await flights(inner).aclose()
    assert inner.closed


async def test_waiting_is_part_of_the_calls_time():
    slow = ScriptedBackend(answers=[Script(first_token_seconds=0.1), "b"])
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
    bench = Bench(replace(tier("small"), backend=flights(slow)), arm=arm)
    first, second = await asyncio.gather(bench.run(), bench.run())
    assert {first.completion.text, second.completion.text} == {"ok", "b"}
    assert second.attempts[0].first_token_seconds >= 0.09
    assert second.attempts[0].seconds >= 0.09


WHAT_HAPPENS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "start", "begin", "end", "fail", "cancel", "wait"]),
        st.integers(0, 99),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(what=WHAT_HAPPENS, patient=st.booleans())
def test_whatever_happens_one_goes_ahead_and_nobody_is_stuck(what, patient):
    asyncio.run(_play(what, patient))


async def _play(what, patient):
    inner = Staged()
    backend = flights(inner, wait_seconds=60.0 if patient else 0.002)
    tasks = {}
    for number, (action, pick) in enumerate(what):
        flying = [*inner.gates]
        pending = [name for name, task in tasks.items() if not task.done()]
        if action == "start":
            [tasks[str(number)]] = start(backend, number)
        elif action == "cancel" and pending:
            tasks[pending[pick % len(pending)]].cancel()
        elif action == "wait" and not patient:
            await asyncio.sleep(0.003)
        elif flying and action in {"begin", "end", "fail"}:
            getattr(inner, f"{action}s")(flying[pick % len(flying)])
        await settle()
        cold = [name for name, gates in inner.gates.items() if not gates[0].done()]
        pending = [name for name, task in tasks.items() if not task.done()]
        assert len(pending) == len(inner.gates) + backend.waiting
        assert not backend.waiting or cold
    await _bring_to_an_end(inner, tasks.values())
    assert backend.waiting == 0
    async with under_way(backend, "last"):
        assert inner.asked[-1] == "last"


async def _bring_to_an_end(inner, tasks):
    for _ in range(200):
        if all(task.done() for task in tasks):
            break
        for name in [*inner.gates]:
            inner.ends(name)
        await settle()
    assert all(task.done() for task in tasks)
    await asyncio.gather(*tasks, return_exceptions=True)


def asked(system, tenant="t"):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
    return ChatRequest(id="r", tenant=tenant, messages=messages)


def test_a_prefix_is_cold_until_an_answer_to_it_began_and_after_its_time():
    clock = Clock()
    recent = RecentPrefixes(ttl_seconds=300.0, clock=clock)
    key, tokens = recent(asked("x" * 4096))
    assert 1024 <= tokens <= 1050
    assert recent(asked("x" * 4096)) == (key, tokens)
    recent.began(key)
    assert recent(asked("x" * 4096)) is None
    assert recent(asked("x" * 4096, tenant="other")) is not None
    assert recent(asked("y" * 4096)) is not None
    clock.pass_(299.0)
    assert recent(asked("x" * 4096)) is None
    clock.pass_(299.0)
    assert recent(asked("x" * 4096)) is None
    clock.pass_(300.0)
    assert recent(asked("x" * 4096)) == (key, tokens)


def test_only_so_many_prefixes_are_remembered_those_last_used():
    recent = RecentPrefixes(ttl_seconds=300.0, max_prefixes=2, clock=Clock())
    for text in "abc":
        recent.began(recent(asked(text))[0])
    assert recent(asked("a")) is not None
    assert recent(asked("c")) is None
