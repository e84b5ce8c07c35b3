from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cascade.backends.scripted import Script
from cascade.baseline import Baseline
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.prefix import Chained, rendering
from cascade.pricing import PriceCard, Rates
from cascade.quote import Quote
from cascade.types import FREE, ChatRequest, Choice, Completion, Usage
from tests.engines import SMALL_THEN_LARGE, Bench, FixedJudge, card, tier
from tests.guards import Clock

M = Decimal(1_000_000)
QUOTE = Quote(tier="large", cold_tokens=50, expected_output_tokens=256)
CARD = card("10", "1", "20")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def asked(*messages: dict[str, Any], **fields: Any) -> ChatRequest:
    return ChatRequest(id="r", messages=messages, **fields)


A, B, C = "a" * 6_400, "b" * 6_400, "c" * 12_800
"""So long that a block of text is less than one in a hundred of each."""


def answered(text: str = B, *, prompt: int = 100, calls=(), **usage: Any) -> Completion:
    used = Usage(**{"input": prompt, "cache_read": 0, "output": 10, **usage})
    return Completion(choices=(Choice(text=text, tool_calls=calls),), usage=used)


class Rival(Baseline):
    """Takes requests as clients send them."""

    def cost(self, quote, card, request, answer):
        text = Chained.of_text(rendering(request), tokens_per_byte=1.0, salt=request.tenant)
        return super().cost(quote, card, text, answer)


def baseline(**options: Any) -> tuple[Rival, Clock]:
    clock = Clock()
    return Rival(["large", "other"], clock=clock, **options), clock


def cached(cost) -> float:
    """Tokens that were read from the cache."""
    return float(cost.cache_read * M)


def about(tokens):
    """All of these tokens but what fills no block, at most one in a hundred."""
    return pytest.approx(tokens, rel=0.01)


FIRST = asked(user(A))
SECOND = asked(user(A), assistant(B), user(C))


def test_a_first_turn_is_cold():
    cost = baseline()[0].cost(QUOTE, CARD, FIRST, answered())
    assert (cost.input, cost.cache_read, cost.output) == (1000 / M, 0, 200 / M)


def test_the_next_turn_finds_all_that_went_before_it_warm():
    rival, _ = baseline()
    rival.cost(QUOTE, CARD, FIRST, answered())
    cost = rival.cost(QUOTE, CARD, SECOND, answered("d", prompt=400))
    assert (cached(cost), float(cost.input)) == (about(200), about(200 * 10e-6))


def test_an_answer_that_the_client_did_not_keep_is_not_part_of_the_prefix():
    rival, _ = baseline()
    rival.cost(QUOTE, CARD, FIRST, answered("another"))
    assert cached(rival.cost(QUOTE, CARD, SECOND, answered(prompt=400))) == about(100)


@pytest.mark.parametrize(
    "other",
    [
        asked(user("b" + A), assistant(B), user(C)),
        asked(*SECOND.messages, tenant="other"),
        asked(*SECOND.messages, tools=[{"type": "function"}]),
        asked({"role": "system", "content": "x"}, *SECOND.messages),
        asked({"role": "system", "content": A}, *SECOND.messages[1:]),
    ],
)
def test_what_differs_from_its_beginning_on_is_cold(other):
    rival, _ = baseline()
    rival.cost(QUOTE, CARD, FIRST, answered())
    assert cached(rival.cost(QUOTE, CARD, other, answered(prompt=400))) == 0


def test_another_tier_is_cold():
    rival, _ = baseline()
    rival.cost(Quote(tier="other"), CARD, FIRST, answered())
    assert cached(rival.cost(QUOTE, CARD, SECOND, answered())) == 0


def test_tools_are_a_prefix_that_conversations_share():
    tools = [{"type": "function", "function": {"name": "f" * 6_400}}]
    rival, _ = baseline()
    rival.cost(QUOTE, CARD, asked(user("a"), tools=tools), answered())
    cost = rival.cost(QUOTE, CARD, asked(user("b"), tools=tools), answered(prompt=1000))
    assert 950 < cached(cost) < 1000
    assert cached(rival.cost(QUOTE, CARD, asked(user("b")), answered())) == 0


def test_a_prefix_cools_down_unless_it_is_used():
    rival, clock = baseline(ttl_seconds=300)
    rival.cost(QUOTE, CARD, FIRST, answered())
    clock.pass_(299)
    assert cached(rival.cost(QUOTE, CARD, FIRST, answered())) == about(100)
    clock.pass_(299)
    assert cached(rival.cost(QUOTE, CARD, FIRST, answered())) == about(100)
    clock.pass_(301)
    assert cached(rival.cost(QUOTE, CARD, FIRST, answered())) == 0


def test_no_more_is_remembered_than_allowed_and_the_latest_used_stays():
    rival, _ = baseline(max_blocks=404)  # of two conversations, each of about 200
    second, third = asked(user("2" + A)), asked(user("3" + A))
    for turn in (FIRST, second, FIRST, third):
        rival.cost(QUOTE, CARD, turn, answered())
    assert cached(rival.cost(QUOTE, CARD, FIRST, answered())) == about(100)
    assert cached(rival.cost(QUOTE, CARD, second, answered())) < 10


def test_what_is_cold_is_written_where_writing_is_what_makes_it_warm():
    rates = Rates(
        input=Decimal(10),
        cache_read=Decimal(1),
        cache_write={"1h": Decimal(20), "5m": Decimal("12.5")},
        output=Decimal(20),
    )
    cost = baseline()[0].cost(QUOTE, PriceCard(rates=rates), FIRST, answered())
    assert (cost.input, cost.cache_write) == (0, 1250 / M)


def test_tokens_that_were_not_reported_are_those_of_the_quote():
    cost = baseline()[0].cost(QUOTE, CARD, FIRST, answered(input=None, output=None))
    assert (cost.input, cost.output) == (500 / M, 256 * 20 / M)


def test_cached_tokens_of_the_tier_that_answered_count_as_any_others():
    cost = baseline()[0].cost(QUOTE, CARD, FIRST, answered(input=10, cache_read=90))
    assert cost.input == 1000 / M


def test_what_the_dearest_tier_read_itself_is_warm_at_least():
    """A chat template's own beginning is warm too, and in no message."""
    own = replace(answered(input=60, cache_read=40), tier="large")
    assert cached(baseline()[0].cost(QUOTE, CARD, FIRST, own)) == 40
    others = replace(own, tier="small")
    assert cached(baseline()[0].cost(QUOTE, CARD, FIRST, others)) == 0


def test_a_card_that_does_not_say_what_a_read_costs_has_no_baseline_for_a_warm_turn():
    rates = Rates(input=Decimal(10), output=Decimal(20))
    rival, _ = baseline()
    assert rival.cost(QUOTE, PriceCard(rates=rates), FIRST, answered()) is not None
    assert rival.cost(QUOTE, PriceCard(rates=rates), SECOND, answered()) is None


def test_the_same_words_are_the_same_prefix_however_a_client_sends_them():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    back = {"id": "c", "function": {"arguments": "{}", "name": "f"}, "type": "function"}
    rival, _ = baseline()
    rival.cost(QUOTE, CARD, FIRST, answered("", calls=(call,)))
    text = {"type": "text", "text": A, "cache_control": {"type": "ephemeral"}}
    said = {"role": "assistant", "content": None, "tool_calls": [back], "refusal": None}
    again = asked({"role": "user", "content": [text]}, said)
    assert cached(rival.cost(QUOTE, CARD, again, answered())) == about(100)


def test_an_image_counts_for_what_it_takes_and_not_for_its_encoding():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10**6}}
    rival, _ = baseline()
    first = asked({"role": "user", "content": [image]})
    rival.cost(QUOTE, CARD, first, answered())
    longer = asked(*first.messages, user("x" * 4000))
    assert cached(rival.cost(QUOTE, CARD, longer, answered("x", prompt=1000))) == pytest.approx(
        500, rel=0.02
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "user", "content": 5},
        {"role": "assistant", "tool_calls": 5},
        {"role": "assistant", "tool_calls": ["x", {"function": "y"}]},
        {"role": "user", "content": ["x", {"text": 5}, None]},
        {"role": "user", "content": "\ud800"},
        {},
    ],
)
def test_a_message_of_an_odd_shape_is_only_a_prefix_like_any_other(odd):
    rival, _ = baseline()
    assert cached(rival.cost(QUOTE, CARD, asked(odd), answered())) == 0
    assert rival.cost(QUOTE, CARD, asked(odd, user("x")), answered()).cache_read >= 0


async def test_a_result_has_the_cost_of_the_dearest_tier_that_could_serve_it():
    usage = Usage(input=100, cache_read=0, output=10)
    bench = Bench(
        tier("small", Script(text="a", usage=usage), prices=card("1", "0.1", "2")),
        tier("large", prices=card("10", "1", "20")),
        tier("blind", prices=card("100", "1", "20"), capabilities=frozenset()),
        judge=FixedJudge(0.9),
    )
    plain = await bench.run()
    assert plain.baseline.total == (100 * 100 + 10 * 20) / M
    seeing = ChatRequest(id="r", messages=FIRST.messages, params={"reasoning_effort": "high"})
    assert (await bench.run(seeing)).baseline.total == (100 * 10 + 10 * 20) / M


async def test_the_baseline_is_never_above_the_cost_of_always_asking_the_dearest():
    """What always-large really pays without a cache is the most that the baseline may be."""
    usage = Usage(input=100, cache_read=0, output=10)
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="large"))
    large = tier("large", Script(text="b", usage=usage), prices=CARD)
    bench = Bench(tier("small"), large, arm=arm)
    first, second = await bench.run(FIRST), await bench.run(FIRST)
    assert first.baseline == first.cost
    assert second.baseline.total < second.cost.total


async def test_only_requests_that_were_answered_have_a_baseline():
    down = Script(error="BackendUnreachableError")
    result = await Bench(tier("small", down), tier("large", down), judge=FixedJudge(0.9)).run()
    assert (result.cost, result.baseline) == (FREE, None)


async def test_without_any_price_there_is_no_baseline():
    bench = Bench(
        tier("small", prices=PriceCard(rates=Rates())),
        tier("large", prices=PriceCard(rates=Rates())),
        judge=FixedJudge(0.9),
        arm=SMALL_THEN_LARGE,
    )
    assert (await bench.run()).baseline is None
