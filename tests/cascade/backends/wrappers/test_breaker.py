import asyncio
from contextlib import aclosing, suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade import errors
from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.breaker import Circuit
from cascade.errors import (
    BackendAuthError,
    BackendBusyError,
    BackendConnectionError,
    BackendCoolingDownError,
    BackendError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendSetupError,
    BackendTimeoutError,
    BackendToolCallError,
    BackendUnreachableError,
)
from tests.engines import request
from tests.guards import COOLDOWN, Clock, cooling

DOWN = Script(error="BackendUnreachableError")
FAULT = BackendServerError("no")
FAULTS = [
    BackendConnectionError,
    BackendUnreachableError,
    BackendTimeoutError,
    BackendServerError,
    BackendProtocolError,
    BackendToolCallError,
]
NO_FAULTS = [
    BackendRefusedError,
    BackendAuthError,
    BackendSetupError,
    BackendOverloadedError,
    BackendBusyError,
]


async def ask(backend, times=1):
    for _ in range(times):
        with suppress(BackendError):
            await backend.complete(request())


async def is_cooling(backend):
    try:
        await backend.complete(request())
    except BackendCoolingDownError:
        return True
    except BackendError:
        pass
    return False


def circuit(clock=None, *, failed=0):
    made = Circuit(COOLDOWN, clock or Clock())
    for _ in range(failed):
        made.failed(made.enter(), FAULT)
    return made


def is_open(made):
    try:
        made.enter()
    except BackendCoolingDownError:
        return True
    return False


async def test_a_server_that_is_down_is_soon_not_asked_any_more():
    inner = ScriptedBackend(answers=[DOWN])
    backend = cooling(inner)
    await ask(backend, 10)
    assert len(inner.requests) == 4


async def test_its_calls_are_counted_however_they_end():
    for script in (Script(text="a b"), DOWN):
        backend = cooling(ScriptedBackend(answers=[script]))
        with suppress(BackendError):
            async with aclosing(backend.stream(request())) as chunks:
                async for _ in chunks:
                    assert backend.load().in_flight == 1
        assert backend.load().in_flight == 0


async def test_a_call_while_it_cools_says_for_how_long_and_why():
    clock = Clock()
    backend = cooling(ScriptedBackend(answers=[DOWN]), clock)
    await ask(backend, 4)
    clock.pass_(1.5)
    with pytest.raises(BackendCoolingDownError) as caught:
        await backend.complete(request())
    assert caught.value.message == (
        "cooling down for 6.5 s more; the last fault: BackendUnreachableError, as scripted"
    )
    assert caught.value.retry_after == 6.5
    assert not caught.value.may_have_cost


async def test_few_calls_say_nothing_however_they_end():
    inner = ScriptedBackend(answers=[DOWN])
    backend = cooling(inner)
    await ask(backend, 3)
    assert len(inner.requests) == 3
    assert not await is_cooling(backend)


def test_it_opens_at_the_rate_and_not_below_it():
    made = circuit()
    for _ in range(4):
        made.answered(made.enter())
    for _ in range(3):
        made.failed(made.enter(), FAULT)
    assert not is_open(made)
    made.failed(made.enter(), FAULT)
    assert is_open(made)


def test_calls_leave_the_window_by_number():
    made = circuit()
    for _ in range(100):
        made.answered(made.enter())
    for _ in range(4):
        made.failed(made.enter(), FAULT)
    assert not is_open(made)
    made.failed(made.enter(), FAULT)
    assert is_open(made)


def test_calls_leave_the_window_by_age():
    clock = Clock()
    made = circuit(clock, failed=3)
    clock.pass_(61.0)
    made.failed(made.enter(), FAULT)
    assert not is_open(made)
    for _ in range(2):
        made.failed(made.enter(), FAULT)
    assert not is_open(made)
    made.failed(made.enter(), FAULT)
    assert is_open(made)


@pytest.mark.parametrize("kind", FAULTS)
async def test_what_speaks_against_the_server_opens_it(kind):
    backend = cooling(ScriptedBackend(answers=[Script(error=kind.__name__)]))
    await ask(backend, 4)
    assert await is_cooling(backend)


@pytest.mark.parametrize("kind", NO_FAULTS)
async def test_bad_requests_wrong_keys_and_busy_servers_do_not_cool_it_for_everybody(kind):
    inner = ScriptedBackend(answers=[Script(error=kind.__name__)])
    backend = cooling(inner)
    await ask(backend, 50)
    assert len(inner.requests) == 50
    assert not await is_cooling(backend)


def test_every_backend_error_is_known_to_speak_against_the_server_or_not():
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, BackendError)
    }
    assert kinds - {BackendError, BackendCoolingDownError} == {*FAULTS, *NO_FAULTS}


async def test_an_answer_cut_in_the_middle_speaks_against_the_server():
    backend = cooling(ScriptedBackend(answers=[Script(text="a b", cut_after=1)]))
    await ask(backend, 4)
    assert await is_cooling(backend)


async def test_one_tier_that_cools_leaves_the_others_alone():
    clock = Clock()
    down, up = (cooling(ScriptedBackend(answers=[a]), clock) for a in (DOWN, "ok"))
    await ask(down, 4)
    assert await is_cooling(down)
    assert not await is_cooling(up)


async def test_it_cools_and_one_answer_closes_it():
    clock = Clock()
    inner = ScriptedBackend(answers=[DOWN] * 4 + ["ok"])
    backend = cooling(inner, clock)
    await ask(backend, 4)
    clock.pass_(7.9)
    assert await is_cooling(backend)
    clock.pass_(0.1)
    for _ in range(5):
        assert (await backend.complete(request())).text == "ok"


def test_after_it_closed_the_old_faults_are_forgotten_and_the_first_cool_down_is_short_again():
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    made.failed(made.enter(), FAULT)
    clock.pass_(16.0)
    made.answered(made.enter())
    for _ in range(3):
        made.failed(made.enter(), FAULT)
    assert not is_open(made)
    made.failed(made.enter(), FAULT)
    clock.pass_(8.0)
    assert not is_open(made)


def test_a_failed_probe_opens_it_for_longer_up_to_a_limit():
    clock = Clock()
    made = circuit(clock, failed=4)
    for seconds in (8.0, 16.0, 20.0, 20.0):
        clock.pass_(seconds - 0.1)
        assert is_open(made)
        clock.pass_(0.2)
        made.failed(made.enter(), FAULT)


def test_one_probe_goes_through_at_a_time():
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    made.enter()
    assert is_open(made)


def test_a_probe_that_never_reports_back_does_not_keep_it_open():
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    made.enter()
    clock.pass_(8.0)
    made.answered(made.enter())
    assert not is_open(made)


def test_a_probe_whose_answer_takes_longer_than_the_cool_down_closes_it():
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    probe = made.enter()
    for _ in range(3):
        clock.pass_(8.0)
        made.enter()
    made.answered(probe)
    assert not is_open(made)


@pytest.mark.parametrize("kind", [BackendRefusedError, BackendAuthError, BackendOverloadedError])
def test_a_probe_that_is_answered_with_a_refusal_closes_it(kind):
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    made.failed(made.enter(), kind("no"))
    assert not is_open(made)
    assert not is_open(made)


def test_a_probe_that_our_own_limit_held_back_leaves_the_next_call_to_probe():
    clock = Clock()
    made = circuit(clock, failed=4)
    clock.pass_(8.0)
    made.failed(made.enter(), BackendBusyError("full"))
    assert not is_open(made)
    assert is_open(made)


def test_calls_from_before_the_outage_that_end_late_change_nothing():
    clock = Clock()
    made = circuit(clock)
    late = [made.enter() for _ in range(7)]
    for ticket in late[:4]:
        made.failed(ticket, FAULT)
    made.failed(late[4], FAULT)
    made.answered(late[5])
    assert is_open(made)
    clock.pass_(8.0)
    probe = made.enter()
    made.failed(late[6], FAULT)
    made.answered(probe)
    assert not is_open(made)


@pytest.mark.parametrize("leave", ["cancel", "close", "bug"])
async def test_a_call_that_ends_without_a_word_counts_neither_way(leave):
    class Slow(ScriptedBackend):
        async def stream(self, request):
            self.requests.append(request)
            if len(self.requests) <= 3 or len(self.requests) > 8:
                raise FAULT
            if leave == "bug":
                raise ZeroDivisionError
            yield await asyncio.Event().wait() if leave == "cancel" else None

    inner = Slow()
    backend = cooling(inner)
    await ask(backend, 3)
    for _ in range(5):
        await _leave(backend, inner)
    assert len(inner.requests) == 8
    await ask(backend)
    assert await is_cooling(backend)


async def _leave(backend, inner):
    before = len(inner.requests)
    async with aclosing(backend.stream(request())) as chunks:
        task = asyncio.ensure_future(anext(chunks))
        while len(inner.requests) == before:
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError, ZeroDivisionError):
            await task


async def test_a_probe_that_is_cancelled_leaves_the_next_call_to_probe():
    clock = Clock()
    slow = Script(text="a b", token_seconds=60)
    inner = ScriptedBackend(answers=[DOWN] * 4 + [slow, "ok"])
    backend = cooling(inner, clock)
    await ask(backend, 4)
    clock.pass_(8.0)
    async with aclosing(backend.stream(request())) as chunks:
        await anext(chunks)
    assert (await backend.complete(request())).text == "ok"
    assert (await backend.complete(request())).text == "ok"


async def test_closing_closes_the_inner_backend():
    inner = ScriptedBackend()
    await cooling(inner).aclose()
    assert inner.closed


ENDS = ["answered", "fault", "refused", "busy", "unknown", "never"]


@given(
    st.lists(
        st.tuples(st.sampled_from(ENDS), st.integers(0, 5), st.floats(0, 30)),
        max_size=80,
    )
)
def test_whatever_happened_it_cools_in_time_and_lets_probes_through_one_by_one(steps):
    clock = Clock()
    made = circuit(clock)
    tickets = []
    for ends, which, seconds in steps:
        with suppress(BackendCoolingDownError):
            tickets.append(made.enter())
        if tickets and ends != "never":
            _end(made, tickets.pop(which % len(tickets)), ends)
        clock.pass_(seconds)
    clock.pass_(COOLDOWN.max_seconds)
    made.answered(made.enter())
    for _ in range(20):
        made.answered(made.enter())


@given(st.lists(st.floats(0, 30), max_size=60))
def test_a_server_that_stays_down_is_probed_at_most_once_a_cool_down(waits):
    clock = Clock()
    made = circuit(clock, failed=4)
    probes = []
    for seconds in waits:
        clock.pass_(seconds)
        with suppress(BackendCoolingDownError):
            ticket = made.enter()
            probes.append(clock.now)
            made.failed(ticket, FAULT)
    gaps = [b - a for a, b in pairwise(probes)]
    assert all(gap >= least for gap, least in zip(gaps, [16.0, *[20.0] * 99], strict=False))


def _end(made, ticket, how):
    if how == "answered":
        made.answered(ticket)
    elif how == "unknown":
        made.unknown(ticket)
    else:
        kinds = {"fault": FAULT, "refused": BackendRefusedError("no"), "busy": BackendBusyError("")}
        made.failed(ticket, kinds[how])
