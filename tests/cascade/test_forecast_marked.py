"""Providers that keep only what a request marks: what is behind its last mark is always cold."""

from dataclasses import replace

import pytest

from cascade.caches import CacheCard
from tests.cascade.test_forecast import Served, asked

MARKED = CacheCard(kind="ttl", ttl_seconds=300.0, marked=True)


def marking(text="What is next?", *, said=(), marks=(), **values):
    """A conversation whose messages of these places are marked."""
    made = asked(text, said=said, **values)
    mark = {"cache_control": {"type": "ephemeral"}}
    return replace(
        made, messages=[{**m, **(mark if i in marks else {})} for i, m in enumerate(made.messages)]
    )


async def test_where_a_provider_keeps_what_is_marked_nothing_is_warm_without_a_mark():
    served = Served(MARKED)
    await served.call(asked(), cached=0)
    told = await served.quote(asked())
    assert told.warm_tokens == 0
    assert told.cold_premium is None


async def test_what_was_sent_without_a_mark_is_not_there_for_one_who_marks():
    served = Served(MARKED)
    await served.call(asked(), cached=0)
    assert (await served.quote(marking(marks=[0, 1]))).warm_tokens == 0
    await served.call(marking(marks=[0]), cached=0)
    told = await served.quote(marking(marks=[0, 1]))
    assert told.warm_tokens > 200
    assert (await served.quote(asked())).warm_tokens == 0


async def test_what_stands_behind_the_last_mark_is_never_warm():
    served = Served(MARKED)
    long = "and so on, " * 200
    await served.call(marking(long, marks=[0]), cached=0)
    same = await served.quote(marking(long, marks=[0]))
    only = await served.quote(marking("What?", marks=[0]))
    assert same.warm_tokens == pytest.approx(only.warm_tokens, abs=20)
    assert same.cold_tokens > 400


async def test_a_mark_on_the_whole_request_is_one_on_its_end():
    served = Served(MARKED)
    whole = asked(params={"cache_control": {"type": "ephemeral"}})
    await served.call(whole, cached=0)
    told = await served.quote(whole)
    assert told.cold_tokens < 20
