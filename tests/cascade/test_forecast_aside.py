"""Calls that are no turns of a conversation."""

from cascade.forecast import OUTPUT_TOKENS
from tests.builders import attempt, completion, usage
from tests.cascade.test_forecast import Served, asked


async def test_calls_aside_share_the_caches_and_are_no_turns():
    served = Served()
    aside = served.forecast.aside()
    request = asked()
    reading = await aside.read(request, ["t"], counted=[])
    assert served.forecast.under_way == aside.under_way == 1
    aside.began(request, reading.prompts["t"], None)
    aside.over(request, reading, [attempt(tier="t")], {}, answered="t")
    assert served.forecast.under_way == 0
    assert served.forecast.ledger.held_tokens("t") > 0
    assert served.forecast.recall(request).served_by == ""
    assert (await served.quote(asked(id="r2"))).warm_tokens > 0


async def test_a_request_that_only_fills_a_cache_warms_it_and_is_no_turn():
    served = Served()
    ahead = asked(prewarm=True)
    reading = await served.reads(ahead)
    served.forecast.began(ahead, reading.prompts["t"], None)
    said = attempt(tier="t", completion=completion(tier="t", usage=usage(output=1)))
    served.forecast.ended(ahead, reading.prompts["t"], said)
    served.forecast.over(ahead, reading, [attempt(tier="t")], {}, answered="t")
    assert served.forecast.under_way == 0
    assert served.forecast.recall(asked()).served_by == ""
    told = await served.quote(asked(id="r2"))
    assert told.warm_tokens > 0
    assert told.expected_output_tokens == OUTPUT_TOKENS
