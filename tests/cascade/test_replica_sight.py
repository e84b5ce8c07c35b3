"""What a forecast tells those who choose between a tier's servers."""

from dataclasses import replace

import pytest

from cascade.caches import CacheCard
from cascade.forecast import Forecast
from tests.engines import request, tier

LONG = "Be brief. " * 100


class Watched:
    """A tier of two servers, and what it was given to look with."""

    def __init__(self, cache, **claims):
        self.looks = []
        made = tier("t", replicated=True, cache=cache, watch=self.looks.append, **claims)
        self.forecast = Forecast({"t": made})

    def look(self, asked):
        return self.looks[0](asked, ["a", "b"])


@pytest.fixture
def watched():
    return Watched(CacheCard(kind="blocks", block=16, capacity_tokens=2_000))


def asks(number, *, tenant="default"):
    return replace(request(LONG), id=f"r{number}", tenant=tenant)


async def read(watched, asked):
    return await watched.forecast.read(asked, ["t"], counted=[])


async def test_a_request_that_is_open_is_seen_with_what_each_server_holds(watched):
    first, second = asks(1), asks(2)
    prompt = (await read(watched, first)).prompts["t"]
    await read(watched, second)
    watched.forecast.began(first, prompt, "b")
    sight = watched.look(second)
    assert sight.tokens == prompt.chain.tokens
    assert sight.seen.warm_tokens["a"] == 0
    assert 0.8 * sight.tokens < sight.seen.warm_tokens["b"] < sight.tokens


async def test_what_goes_next_is_only_told_of_a_full_cache(watched):
    prompt = (await read(watched, asks(1))).prompts["t"]
    watched.forecast.began(asks(1), prompt, "b")
    assert watched.look(asks(1)).seen.victim_age_seconds == {}
    for number in range(2, 20):
        other = replace(asks(number), messages=[{"role": "user", "content": f"{number} {LONG}"}])
        watched.forecast.began(other, (await read(watched, other)).prompts["t"], "b")
    ages = watched.look(asks(1)).seen.victim_age_seconds
    assert set(ages) == {"b"}
    assert ages["b"] >= 0


async def test_tenants_prefixes_are_their_own(watched):
    ours, theirs = asks(1, tenant="ours"), asks(2, tenant="theirs")
    await read(watched, ours)
    await read(watched, theirs)
    assert watched.look(ours).prefix != watched.look(theirs).prefix
    again = asks(3, tenant="ours")
    await read(watched, again)
    assert watched.look(again).prefix == watched.look(ours).prefix


async def test_what_is_over_or_was_never_read_is_not_seen(watched):
    asked = asks(1)
    assert watched.look(asked) is None
    reading = await read(watched, asked)
    assert watched.look(asked) is not None
    watched.forecast.over(asked, reading, [], {})
    assert watched.look(asked) is None


def test_where_nothing_is_known_of_the_cache_nobody_is_told():
    assert Watched(None).looks == []
