"""What one request ahead of nine saves where a prefix is kept from its first answer on."""

import asyncio
from decimal import Decimal

import pytest

from cascade.backends.wrappers.single_flight import FanOut, RecentPrefixes, SingleFlightBackend
from cascade.pricing import PriceCard, Rates
from cascade.protocols import Backend
from cascade.types import ChatRequest, Choice, Chunk, Completion, Usage

CARD = PriceCard(
    rates=Rates(
        input=Decimal(2),
        cache_read=Decimal("0.10"),
        cache_write={"5m": Decimal("2.50")},
        output=Decimal(10),
    )
)
PREFIX_TOKENS = 20_000


class Provider(Backend):
    """Computes a prefix for a while, and has it from when an answer begins."""

    def __init__(self):
        self.has = set()

    async def stream(self, request):
        prefix = request.messages[0]["content"]
        warm = prefix in self.has
        await asyncio.sleep(0 if warm else 0.02)
        self.has.add(prefix)
        yield Chunk(choices=[{"delta": {"content": "a"}}])
        usage = Usage(
            input=0,
            cache_read=PREFIX_TOKENS if warm else 0,
            cache_write={"5m": 0 if warm else PREFIX_TOKENS},
            output=0,
        )
        yield Chunk(completion=Completion(choices=[Choice(text="a")], usage=usage))

    async def aclose(self):
        pass


def fanned(provider):
    recent = RecentPrefixes(ttl_seconds=300.0)
    fan_out = FanOut(wait_seconds=10.0, min_tokens=1024)
    return SingleFlightBackend(provider, fan_out, shared_prefix=recent, began=recent.began)


async def cents(backend):
    def asking(number):
        system = {"role": "system", "content": "x" * 4 * PREFIX_TOKENS}
        ask = {"role": "user", "content": str(number)}
        return ChatRequest(id=str(number), messages=[system, ask])

    answers = await asyncio.gather(*(backend.complete(asking(n)) for n in range(10)))
    return 100 * sum(CARD.price(answer.usage).total for answer in answers)


@pytest.mark.parametrize(("wrap", "cost"), [(lambda p: p, "50"), (fanned, "6.8")])
async def test_ten_at_once_cost_fifty_cents_and_with_one_ahead_six_point_eight(wrap, cost):
    assert await cents(wrap(Provider())) == Decimal(cost)


async def test_ten_at_once_on_a_warm_prefix_do_not_wait_and_only_read():
    provider = Provider()
    backend = fanned(provider)
    await cents(backend)
    assert await cents(backend) == Decimal(2)
