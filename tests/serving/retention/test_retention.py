from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.caches import CacheCard
from cascade.pricing import PriceCard, Rates
from serving.doctor.calls import Call
from serving.retention.gaps import Gaps
from serving.retention.present import retention_json, retention_view
from serving.retention.uses import TierUses, count_uses
from serving.retention.worth import (
    Retention,
    Speeds,
    TierTerms,
    break_even_seconds,
    retention,
)
from tests.serving.doctor.logs import asked, unlogged
from tests.serving.store.test_present import shown

TALK = ("u1", "a:1", "u2", "a:2", "u3", "a:3", "u4")
WRITES = {"5m": Decimal("3.75"), "1h": Decimal(6)}
RATES = Rates(input=Decimal(3), cache_read=Decimal("0.3"), cache_write=WRITES, output=Decimal(15))
API = TierTerms(prices=PriceCard(rates=RATES), cache=CacheCard(kind="ttl", ttl_seconds=300))
OWN = TierTerms(
    prices=PriceCard(rates=replace(RATES, cache_write={})),
    cache=CacheCard(kind="blocks", block=16, capacity_tokens=400_000),
    speeds=Speeds(prefill=Decimal(8_000), cached=Decimal(80_000)),
)


def talk() -> list[Call]:
    """A conversation whose second turn comes after 60 s and whose third after 600 s more."""
    return unlogged(
        asked("one", 0, 0, *TALK[:1]),
        asked("two", 60, 0, *TALK[:3]),
        asked("three", 660, 0, *TALK[:5]),
    )


def found(calls: list[Call], terms: TierTerms = API) -> Retention:
    uses = count_uses(calls, lambda _: terms.horizons)
    return retention("large", uses["large"], terms)


def test_a_time_to_live_costs_what_it_reads_and_what_it_writes() -> None:
    # In 5 min the second turn reads 1,700 of its 2,100 tokens, the third nothing of its 2,500; in
    # 1 h that one reads 2,100.
    short, long = found(talk()).ttls
    assert (short.read_tokens, short.written_tokens) == (1700, 4600)
    assert short.dollars_per_million == (1700 * Decimal("0.3") + 4600 * Decimal("3.75")) / 3
    assert (long.read_tokens, long.written_tokens) == (3800, 2500)
    assert long.dollars_per_million == (3800 * Decimal("0.3") + 2500 * Decimal(6)) / 3
    best = found(talk()).cheapest
    assert best == long


def test_other_conversations_keep_the_tools_and_the_system_prompt_warm() -> None:
    calls = unlogged(
        asked("one", 0, 0, "u1", session="a"),
        asked("two", 200, 0, "x1", session="b"),
        asked("three", 400, 0, "u1", "a:1", "u2", session="a"),
    )
    short = found(calls).ttls[0]
    # The 1,500 shared tokens are read twice; the 200 of the conversation have expired.
    assert (short.read_tokens, short.written_tokens) == (3000, 2500)


def test_a_ping_costs_a_read_and_saves_a_write() -> None:
    shared, own = (ping for ping in found(talk()).pings if ping.seconds == 300)
    assert (shared.piece, shared.times, own.piece, own.times) == ("shared", 1, "conversation", 1)
    assert own.first_costs == 2100 * Decimal("0.3") / 3
    assert own.first_saves == 2100 * Decimal("3.45") / 3
    assert own.saves_per_million == own.first_saves - own.first_costs
    assert shared.saves_per_million == 1500 * (Decimal("3.45") - Decimal("0.3")) / 3


def test_pings_for_conversations_that_end_are_paid_for_nothing() -> None:
    """One of twenty comes back: 1/20 of a saving of 3.45 against 0.30 for each."""
    calls = unlogged(
        *(asked(f"r{n}", n, 0, "u1", session=f"s{n}") for n in range(20)),
        asked("back", 400, 0, "u1", "a:1", "u2", session="s0"),
        asked("end", 9000, 0, "u1", session="end"),
    )
    own = next(p for p in found(calls).pings if (p.piece, p.seconds) == ("conversation", 300))
    assert (own.times, own.saves_per_million) == (0, 0)
    # The 19 others, and the one that came back and then did not again; the last is still young.
    assert own.first_costs == (19 * 1700 + 1700 + 2100) * Decimal("0.3") / 22


def test_several_pings_in_a_row_bridge_a_longer_gap() -> None:
    calls = unlogged(asked("one", 0, 0, "u1"), asked("two", 1400, 0, "u1", "a:1", "u2"))
    own = next(p for p in found(calls).pings if (p.piece, p.seconds) == ("conversation", 300))
    assert own.times == 4
    assert own.saves_per_million == 1700 * (Decimal("3.45") - 4 * Decimal("0.3")) / 2
    assert own.first_saves == 0


def test_without_prices_nothing_is_made_up() -> None:
    result = found(talk(), TierTerms())
    assert [ttl.dollars_per_million for ttl in result.ttls] == [None, None]
    assert (result.cheapest, result.pings) == (None, [])
    text = shown(retention_view([result]))
    assert "unknown" in text
    assert "not known" in text


def test_a_time_to_live_that_the_tier_does_not_have_is_not_recommended() -> None:
    plain = TierTerms(
        prices=PriceCard(rates=replace(RATES, cache_write={})),
        cache=CacheCard(kind="ttl", ttl_seconds=600),
    )
    result = found(talk(), plain)
    assert [(ttl.seconds, ttl.offered) for ttl in result.ttls] == [
        (300, False),
        (600, True),
        (3600, False),
    ]
    assert result.cheapest is not None
    assert result.cheapest.seconds == 600
    assert "(not offered)" in shown(retention_view([result]))


def test_calls_without_reported_tokens_are_counted_apart() -> None:
    mute = talk()[1]._replace(cold_tokens=None, read_tokens=None)
    uses = count_uses([talk()[0], mute], lambda _: (300.0,))["large"]
    assert (uses.calls, uses.unreported, uses.prompt_tokens) == (1, 1, 1700)


def with_tools(*gaps: float) -> list[Call]:
    """Calls of tools that took two seconds each, and results that came so long after them."""
    at, calls = 0.0, []
    for number, gap in enumerate((*gaps, 0.0)):
        (call,) = unlogged(asked(f"r{number}", at, 0, *TALK[:1]))
        calls.append(call._replace(asks_tools=True))
        at += 2.0 + gap
    return calls


def test_holding_breaks_even_where_the_memory_held_is_worth_the_prefill() -> None:
    assert OWN.speeds is not None
    # 400,000 tokens: 50 s to compute, 5 s to read back.
    assert break_even_seconds(400_000, OWN.speeds) == 45
    held = found(with_tools(1, 2, 30, 300), OWN).holding
    assert held.number == 4
    assert held.break_even == 45
    assert held.share == 0.75
    assert held.p50 == pytest.approx(2, rel=0.05)
    assert held.p99 == pytest.approx(300, rel=0.05)
    text = shown(retention_view([found(with_tools(1, 2, 30, 300), OWN)]))
    assert "400,000 tokens x (1/8,000 - 1/80,000) s = 45 s: 75.0% come within that" in text


def test_of_a_provider_the_time_to_live_is_what_tools_have() -> None:
    held = found(with_tools(1, 2, 30, 900), API).holding
    assert (held.break_even, held.share) == (None, 0.75)
    assert "within the tier's time to live of 5 min" in shown(
        retention_view([found(with_tools(1, 2, 30, 900), API)])
    )


def test_formulas_are_shown_with_their_numbers() -> None:
    text = " ".join(shown(retention_view([found(talk())])).split())
    assert "cheapest: 1 h, (3,800 x $0.3 + 2,500 x $6) / 3 = $5,380.00 per million" in text
    assert "best once, which saves $2,205.00 in all" in text


def test_a_short_time_with_pings_may_be_cheaper_than_a_long_one() -> None:
    """5,920 less 2,205 dollars for 5 min, against 5,380 for 1 h."""
    result = found(talk())
    assert result.pinged is not None
    ping, comes_to = result.pinged
    assert (ping.seconds, ping.piece, comes_to) == (300, "conversation", 3715)
    text = " ".join(shown(retention_view([result])).split())
    assert "cheaper still: 5 min with pings of conversations, $3,715.00 per million" in text
    once = unlogged(asked("one", 0, 0, "u1"), asked("two", 100, 0, "u1", "a:1", "u2"))
    assert found(once).pinged is None


def test_machines_get_the_same() -> None:
    (value,) = retention_json([found(talk())])
    assert value["cheapest_seconds"] == 3600
    assert value["ttls"][1]["dollars_per_million"] == "5380"
    assert value["cheapest_with_pings"] == {
        "seconds": 300,
        "piece": "conversation",
        "dollars_per_million": "3715",
    }


def test_nothing_to_look_at_says_what_to_do() -> None:
    assert "widen --since" in shown(retention_view([]))
    empty = retention("large", TierUses(), API)
    assert "widen --since" in shown(retention_view([empty]))


def test_a_distribution_of_gaps_is_right_to_five_per_cent() -> None:
    gaps = Gaps()
    assert (gaps.quantile(0.5), gaps.share_within(1)) == (None, None)
    for number in range(1, 1001):
        gaps.add(number / 10)
    assert gaps.quantile(0.5) == pytest.approx(50, rel=0.05)
    assert gaps.quantile(0.99) == pytest.approx(99, rel=0.05)
    assert gaps.share_within(25) == pytest.approx(0.25, abs=0.02)
    gaps.add(-1)
    assert gaps.number == 1001


def test_calls_of_one_request_are_not_each_others_results() -> None:
    calls = with_tools(5, 7)
    samples = [calls[0], calls[1]._replace(request_id=calls[0].request_id), calls[2]]
    held = found(samples, OWN).holding
    assert held.number == 1
    assert held.p50 == pytest.approx(7, rel=0.05)


def test_what_began_before_the_answer_had_ended_is_no_result() -> None:
    first, second, third = with_tools(5, 7)
    early = second._replace(began=first.ended - 1.0)
    held = found([first, early, third], OWN).holding
    assert held.number == 1
    assert held.p50 == pytest.approx(7, rel=0.05)


def test_a_side_call_is_not_the_conversations_last_use() -> None:
    calls = unlogged(
        asked("one", 0, 0, *TALK[:1]),
        asked("side", 30, 0, "summarize", system="You plan."),
        asked("two", 60, 0, *TALK[:3]),
    )
    calls[0] = calls[0]._replace(asks_tools=True)
    result = found(calls)
    # As without the side call: the second turn reads 1,700 of its 2,100 tokens. The side call
    # writes its 1,700, and is not where the tools' results are waited for.
    assert (result.ttls[0].read_tokens, result.ttls[0].written_tokens) == (1700, 1700 + 400 + 1700)
    assert result.holding.number == 1
    assert result.holding.p50 == pytest.approx(58, rel=0.05)
