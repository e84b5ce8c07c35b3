"""When a prompt is counted, and what becomes of the count."""

import asyncio

import pytest

from cascade.tiers.windows import too_long
from tests.engines import request, tier


class Counting:
    """Counts what it is told to count; remembers what it was asked."""

    def __init__(self, count=None, gate=None):
        self.asked = []
        self._count = count
        self._gate = gate

    async def count(self, asked):
        self.asked.append(asked)
        if self._gate is not None:
            await self._gate.wait()
        return self._count


NEAR = request("word " * 150)
"""150 tokens, which its 750 bytes cannot tell."""


async def why(count, window, asked=NEAR):
    tokenizer = Counting(count)
    lacks = await too_long([tier("t", tokenizer=tokenizer, context_tokens=window)], asked, {})
    return lacks.get("t"), len(tokenizer.asked)


@pytest.mark.parametrize(
    ("count", "lack"),
    [
        (1000, "has a window of 1000 tokens, too short for the prompt of 1000"),
        (12_345, "has a window of 1000 tokens, too short for the prompt of 12345"),
        (999, None),
        (None, None),
    ],
)
async def test_a_prompt_must_leave_room_for_one_token_and_an_unknown_count_excludes_nobody(
    count, lack
):
    assert await why(count, 1000) == (lack, 1)


async def test_a_prompt_that_surely_fits_is_not_counted():
    assert await why(10_000, 128_000) == (None, 0)


async def test_without_a_window_or_a_tokenizer_there_is_nothing_to_count():
    assert await why(10_000, None) == (None, 0)
    assert await too_long([tier("t", context_tokens=10)], NEAR, {}) == {}
    assert await too_long([], NEAR, {}) == {}


async def test_all_counts_are_made_at_the_same_time():
    gate = asyncio.Event()
    waiting = [Counting(2000, gate) for _ in range(3)]
    tiers = [tier(f"t{i}", tokenizer=each, context_tokens=900) for i, each in enumerate(waiting)]
    counting = asyncio.create_task(too_long(tiers, NEAR, {}))
    async with asyncio.timeout(5):
        while not all(each.asked for each in waiting):
            await asyncio.sleep(0)
        gate.set()
        assert (await counting).keys() == {"t0", "t1", "t2"}


async def test_what_is_counted_is_what_the_tier_would_get():
    tokenizer = Counting(5)
    asked = request("word " * 150, prompt_cache_key="k")
    knows_nothing = tier("t", tokenizer=tokenizer, context_tokens=900, accepts=frozenset())
    await too_long([knows_nothing], asked, {})
    assert tokenizer.asked[0].params == {}
