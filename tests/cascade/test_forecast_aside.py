"""Calls that are no turns of a conversation."""

from tests.builders import attempt
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
