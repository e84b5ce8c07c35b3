from decimal import Decimal

import pytest

from cascade.pricing import PriceCard, Rates
from cascade.types import Usage

D = Decimal
SONNET = PriceCard(
    rates=Rates(
        input=D(3), cache_read=D("0.30"), cache_write={"5m": D("3.75"), "1h": D(6)}, output=D(15)
    )
)
GPT_5_MINI = PriceCard(rates=Rates(input=D("0.25"), cache_read=D("0.025"), output=D(2)))
TERRA = PriceCard(
    rates=Rates(input=D(2), cache_read=D("0.20"), cache_write={"default": D("2.5")}, output=D(12))
)
GPT_5_4 = PriceCard(
    rates=Rates(input=D("2.5"), cache_read=D("0.25"), output=D(15)),
    long_prompt_rates=[
        (272_000, Rates(input=D(5), cache_read=D("0.5"), output=D("22.5"))),
    ],
)


@pytest.mark.parametrize(
    ("card", "usage", "millionths"),
    [
        (SONNET, Usage(input=1000, cache_read=8000, cache_write={"5m": 1000}, output=100), 10_650),
        (SONNET, Usage(input=1000, cache_read=8000, cache_write={"1h": 1000}, output=100), 12_900),
        (GPT_5_MINI, Usage(input=2000, cache_read=8000, output=100), 900),
        (
            TERRA,
            Usage(input=1000, cache_read=6000, cache_write={"default": 3000}, output=100),
            11_900,
        ),
        (GPT_5_4, Usage(input=100_000, cache_read=200_000, output=100), 602_250),
    ],
    ids=["write 5m", "write 1h", "read", "read and write", "long prompt"],
)
def test_known_bills_are_reproduced(card, usage, millionths):
    assert card.price(usage).total * 1_000_000 == millionths


def test_a_prompt_at_the_limit_is_still_priced_as_short():
    short = GPT_5_4.price(Usage(input=272_000, output=0)).total
    long = GPT_5_4.price(Usage(input=272_001, output=0)).total
    assert short == D("0.68")
    assert long > short * 2 - D("0.001")


@pytest.mark.parametrize(
    ("rates", "usage"),
    [
        (Rates(), Usage(input=1, output=1)),
        (Rates(input=D(1), output=D(1)), Usage(input=1, cache_read=1, output=1)),
        (
            Rates(input=D(1), cache_read=D(1), output=D(1)),
            Usage(input=1, cache_write={"5m": 1}, output=1),
        ),
        (Rates(input=D(1), cache_read=D(1), output=D(1)), Usage(output=1)),
        (Rates(input=D(1), cache_read=D(1), output=D(1)), Usage(input=1)),
    ],
    ids=["no rates", "no read rate", "no write rate", "no prompt count", "no answer count"],
)
def test_what_is_not_known_costs_none_and_never_zero(rates, usage):
    assert PriceCard(rates=rates).price(usage) is None


def test_a_free_model_costs_zero():
    free = PriceCard(rates=Rates(input=D(0), cache_read=D(0), output=D(0)))
    assert free.price(Usage(input=5, output=5)).total == 0


def test_reasoning_is_paid_at_the_rate_of_output():
    card = PriceCard(rates=Rates(input=D(1), cache_read=D(1), output=D(10)))
    assert card.price(Usage(input=0, output=3, reasoning=7)).output == D("0.0001")


def test_a_gpu_card_prices_tokens_by_the_time_they_take():
    card = PriceCard.from_gpu(
        usd_per_hour=D("3.6"),
        prefill_tokens_per_second=D(1000),
        cached_tokens_per_second=D(100_000),
        decode_tokens_per_second=D(50),
    )
    cost = card.price(Usage(input=1000, cache_read=100_000, output=50))
    assert (cost.input, cost.cache_read, cost.output) == (D("0.001"), D("0.001"), D("0.001"))


def test_costs_add_up_bucket_by_bucket():
    cost = SONNET.price(Usage(input=1000, cache_read=8000, cache_write={"5m": 1000}, output=100))
    assert (cost + cost).total == cost.total * 2
    assert cost.input + cost.cache_read + cost.cache_write + cost.output == cost.total


@pytest.mark.parametrize(
    ("card", "warm", "cold", "ttl", "millionths"),
    [
        (GPT_5_MINI, 8000, 2000, None, 700),
        (SONNET, 8000, 2000, None, 9_900),
        (SONNET, 8000, 2000, "1h", 14_400),
        (GPT_5_4, 200_000, 72_000, None, 230_000),
        (GPT_5_4, 200_000, 100_000, None, 600_000),
        (GPT_5_MINI, 0, 0, None, 0),
    ],
    ids=[
        *("computed", "written the cheapest way", "written for an hour"),
        *("not yet a long prompt", "long by both together", "nothing"),
    ],
)
def test_a_prompt_is_read_where_warm_and_written_or_computed_where_cold(
    card, warm, cold, ttl, millionths
):
    assert card.prompt_cost(warm=warm, cold=cold, write_ttl=ttl) * 1_000_000 == millionths


def test_a_prompt_that_needs_an_unknown_rate_has_no_cost():
    unread = PriceCard(rates=Rates(input=D(1), output=D(1)))
    assert unread.prompt_cost(warm=1, cold=1) is None
    assert unread.prompt_cost(warm=0, cold=1) == D("0.000001")
    assert PriceCard(rates=Rates(cache_read=D(1))).prompt_cost(warm=1, cold=1) is None
    assert SONNET.prompt_cost(warm=1, cold=1, write_ttl="12h") is None


def test_a_token_costs_what_its_prompt_is_long_enough_for():
    assert (SONNET.read_rate(), SONNET.write_rate()) == (D("0.0000003"), D("0.00000375"))
    assert SONNET.write_rate("1h") == D("0.000006")
    assert SONNET.write_rate("12h") is None
    assert GPT_5_MINI.write_rate() == D("0.00000025")
    assert GPT_5_4.read_rate(272_001) == 2 * GPT_5_4.read_rate(272_000)
    assert GPT_5_4.write_rate(prompt=272_001) == D("0.000005")


def test_the_cost_of_a_prompt_is_that_of_its_tokens_one_by_one():
    warm, cold = 1234, 567
    expected = warm * SONNET.read_rate() + cold * SONNET.write_rate()
    assert SONNET.prompt_cost(warm=warm, cold=cold) == expected
    assert SONNET.warm_prompt(warm) == warm * SONNET.read_rate()


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_a_prompt_costs_beforehand_what_a_report_of_the_same_tokens_costs(ttl):
    reported = Usage(input=0, cache_read=700, cache_write={ttl: 300}, output=0)
    assert SONNET.prompt_cost(warm=700, cold=300, write_ttl=ttl) == SONNET.price(reported).total
    computed = Usage(input=300, cache_read=700, output=0)
    assert GPT_5_MINI.prompt_cost(warm=700, cold=300) == GPT_5_MINI.price(computed).total
