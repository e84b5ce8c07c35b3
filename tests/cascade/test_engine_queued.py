"""An attempt says how long its call waited for its turn, whether it was answered or not."""

import asyncio
from dataclasses import replace

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.backends.wrappers.limit import LimitedBackend, Limits
from cascade.errors import BackendBusyError
from cascade.protocols import Backend
from tests.engines import Bench, FixedJudge, request, tier

WAITS = Limits(concurrent=1, waiting=2, wait_seconds=30.0)


class InVain(Backend):
    """Waited so long, and was not let in."""

    def __init__(self, seconds):
        self.seconds = seconds

    async def stream(self, request):
        error = BackendBusyError("as many calls as are allowed")
        error.queued_seconds = self.seconds
        raise error
        yield


def bench(backend):
    small = replace(tier("small"), backend=backend)
    return Bench(small, tier("large"), judge=FixedJudge(0.9))


async def test_the_second_of_two_calls_waited_while_the_first_was_answered():
    slow = ScriptedBackend(answers=[Script(first_token_seconds=0.05)])
    asked = bench(LimitedBackend(slow, WAITS))
    first, second = await asyncio.gather(
        asked.run(), asked.run(replace(request(), id="r2", session="other"))
    )
    assert first.attempts[0].queued_seconds == 0.0
    assert 0.0 < second.attempts[0].queued_seconds < second.attempts[0].first_token_seconds


@pytest.mark.parametrize("seconds", [3.0, None])
async def test_a_call_that_was_not_let_in_says_whether_and_how_long_it_waited(seconds):
    result = await bench(InVain(seconds)).run()
    assert [each.step.tier for each in result.attempts] == ["small", "large"]
    assert [each.queued_seconds for each in result.attempts] == [seconds, 0.0]
