import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.cache_economics import (
    LONGEST_PREFIX,
    Batch,
    Link,
    Machine,
    ModelShape,
    PrefixRates,
    break_even,
    in_parallel,
    in_sequence,
    offload_pays,
    prefill_flops,
    prefill_seconds,
    prewarmed,
    requests_that_fit,
    requests_that_pay,
    shortest_offload,
    transfer_seconds,
    uncached,
)

D = Decimal
LLAMA_70B = ModelShape(params=70e9, layers=80, kv_heads=8, head_dim=128)
WITH_ATTENTION = ModelShape(params=70e9, layers=80, kv_heads=8, head_dim=128, heads=64)
QWEN_8B = ModelShape(params=8.2e9, layers=36, kv_heads=8, head_dim=128, heads=32)
H100 = Machine(flops_per_second=989e12, efficiency=0.5)
HALF_A_PETAFLOP = Machine(flops_per_second=1000e12, efficiency=0.5)
FAST = Link(bytes_per_second=25e9, latency_seconds=0.0)


@pytest.mark.parametrize(
    ("write", "above", "pays"),
    [("1.25", "1.278", 2), ("2", "2.111", 3), ("1", "1.000", 2), ("0.5", "0.444", 1)],
    ids=["kept five minutes", "kept an hour", "free to write", "cheaper than computing"],
)
def test_a_write_pays_above_a_number_of_requests(write, above, pays):
    assert round(break_even(write=D(write), read=D("0.1")), 3) == D(above)
    assert requests_that_pay(write=D(write), read=D("0.1")) == pays


def test_the_same_hour_would_need_another_number_at_another_price_of_reading():
    assert break_even(write=D(2), read=D("0.2")) == D("2.25")


def test_a_number_of_requests_that_costs_the_same_does_not_pay_yet():
    assert break_even(write=D("1.5"), read=D("0.5")) == 2
    assert requests_that_pay(write=D("1.5"), read=D("0.5")) == 3


def test_where_reading_is_no_cheaper_a_write_never_pays():
    assert break_even(write=D("1.25"), read=D(1)) is None
    assert requests_that_pay(write=D("1.25"), read=D(1)) is None


SHARES = PrefixRates(fresh=D(1), read=D("0.1"), write=D("1.25"))


def test_a_hundred_requests_cost_least_in_sequence_and_most_at_once():
    batch = Batch(prefix=10_000, suffix=200, requests=100)
    assert uncached(batch, SHARES) == 1_020_000
    assert in_sequence(batch, SHARES) == 131_500
    assert in_parallel(batch, SHARES) == 1_270_000


def test_ten_requests_at_once_cost_a_quarter_more_than_without_a_cache():
    cents = PrefixRates(fresh=D(2), read=D("0.1"), write=D("2.5"))
    batch = Batch(prefix=20_000, suffix=0, requests=10)
    ways = [uncached, in_parallel, in_sequence, prewarmed]
    assert [way(batch, cents) / 10_000 for way in ways] == [40, 50, D("6.8"), 7]


@given(
    st.fractions(1, 3, max_denominator=50),
    st.fractions(0, Fraction(99, 100), max_denominator=100),
)
def test_the_number_that_pays_is_the_first_that_is_cheaper_in_sequence(write, read):
    write, read = (D(each.numerator) / D(each.denominator) for each in (write, read))
    rates = PrefixRates(fresh=D(1), read=read, write=write)
    pays = requests_that_pay(write=write, read=read)

    def saved(requests):
        batch = Batch(prefix=1000, suffix=7, requests=requests)
        return uncached(batch, rates) - in_sequence(batch, rates)

    assert saved(pays) > -D("1e-20")
    assert pays == 1 or saved(pays - 1) <= D("1e-20")


def test_a_token_of_the_large_llama_takes_a_third_of_a_megabyte():
    assert LLAMA_70B.kv_bytes_per_token == 327_680
    assert 32_768 * LLAMA_70B.kv_bytes_per_token == 10 * 2**30
    assert round(32_768 * LLAMA_70B.kv_bytes_per_token / 1e9, 2) == 10.74


def test_a_gigabyte_is_not_a_gibibyte():
    assert requests_that_fit(LLAMA_70B, memory_bytes=60e9, tokens=32_768) == 5
    assert requests_that_fit(LLAMA_70B, memory_bytes=60 * 2**30, tokens=32_768) == 6


@pytest.mark.parametrize(
    ("cached", "milliseconds"),
    [(0, 338), (8600, 9), (2000, 269)],
    ids=["cold", "all but the last 200", "the first 2,000 only"],
)
def test_a_hit_saves_the_work_of_what_is_cached(cached, milliseconds):
    seconds = prefill_seconds(QWEN_8B, H100, tokens=8800, cached=cached)
    assert round(1000 * seconds) == milliseconds


def test_the_work_of_a_prompt_is_that_of_its_parts():
    whole = prefill_flops(QWEN_8B, tokens=900)
    parts = prefill_flops(QWEN_8B, tokens=500) + prefill_flops(QWEN_8B, tokens=900, cached=500)
    assert whole == pytest.approx(parts)
    assert prefill_flops(QWEN_8B, tokens=900, cached=900) == 0


def test_ten_thousand_tokens_are_fetched_much_faster_than_they_are_computed():
    assert round(transfer_seconds(LLAMA_70B, FAST, tokens=10_000), 3) == 0.131
    assert round(prefill_seconds(LLAMA_70B, HALF_A_PETAFLOP, tokens=10_000), 1) == 2.8
    assert round(prefill_seconds(WITH_ATTENTION, HALF_A_PETAFLOP, tokens=10_000), 2) == 3.06
    assert offload_pays(LLAMA_70B, HALF_A_PETAFLOP, FAST, tokens=10_000)


def test_without_latency_no_prefix_is_too_short():
    assert shortest_offload(WITH_ATTENTION, HALF_A_PETAFLOP, FAST) == 1
    assert shortest_offload(LLAMA_70B, HALF_A_PETAFLOP, FAST) == 1


def test_a_prefix_longer_than_any_prompt_is_none():
    hour = Link(bytes_per_second=25e9, latency_seconds=3600.0)
    assert shortest_offload(LLAMA_70B, HALF_A_PETAFLOP, hour) < LONGEST_PREFIX
    for latency in (1e9, 1e300, math.inf):
        late = Link(bytes_per_second=25e9, latency_seconds=latency)
        assert shortest_offload(LLAMA_70B, HALF_A_PETAFLOP, late) is None
    barely = Link(bytes_per_second=1.0, latency_seconds=0.0)
    assert shortest_offload(WITH_ATTENTION, HALF_A_PETAFLOP, barely) is None


def test_latency_makes_short_prefixes_not_worth_fetching():
    late = Link(bytes_per_second=25e9, latency_seconds=0.05)
    # 2.8e-4 s of computing less 1.31e-5 s of transfer gain 2.67e-4 s a token.
    assert shortest_offload(LLAMA_70B, HALF_A_PETAFLOP, late) == 188


def test_a_link_slower_than_the_machine_never_pays_unless_attention_grows_beyond_it():
    slow = Link(bytes_per_second=1e9, latency_seconds=0.0)
    assert shortest_offload(LLAMA_70B, HALF_A_PETAFLOP, slow) is None
    # 3.28e-4 s of transfer against 2.8e-4 + n * 2.62e-9 s of computing a token.
    assert shortest_offload(WITH_ATTENTION, HALF_A_PETAFLOP, slow) == pytest.approx(
        18_200, rel=0.01
    )


@given(
    st.floats(1e8, 1e12), st.floats(0, 10), st.sampled_from([LLAMA_70B, WITH_ATTENTION, QWEN_8B])
)
def test_the_shortest_prefix_pays_and_the_next_shorter_does_not(speed, latency, shape):
    link = Link(bytes_per_second=speed, latency_seconds=latency)
    shortest = shortest_offload(shape, H100, link)
    if shortest is None:
        assert not offload_pays(shape, H100, link, tokens=10**7)
        return
    assert offload_pays(shape, H100, link, tokens=shortest)
    assert shortest == 1 or not offload_pays(
        shape, H100, link, tokens=max(1, shortest * 999 // 1000)
    )
