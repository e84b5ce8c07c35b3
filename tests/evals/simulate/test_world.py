"""Made-up conversations: how they come, how long they are, and what their prompts share."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from evals.simulate.truth import Skill
from evals.simulate.world import BLOCK, OUTPUT_TOKENS, Regime, lineups, regimes, tenant

SKILL = Skill(abilities={"small": 0.4, "large": 2.0})
REGIME = Regime(prefix=6400, turns=8, tokens=640, gap=20.0)


def by_conversation(turns):
    found = {}
    for turn in turns:
        found.setdefault(turn.conversation, []).append(turn)
    return found


@pytest.fixture(scope="module")
def long():
    return tenant(REGIME, SKILL, turns=6000, seed=3)


def test_turns_come_in_time_and_gaps_are_as_long_as_they_say(long):
    assert all(one.at <= other.at for one, other in pairwise(long))
    gaps = [b.at - a.at for some in by_conversation(long).values() for a, b in pairwise(some)]
    assert np.mean(gaps) == pytest.approx(20.0, rel=0.05)


def test_so_many_conversations_are_under_way_and_each_is_about_so_long(long):
    whole = list(by_conversation(long).values())[:-10]
    lengths = [len(some) for some in whole]
    assert (min(lengths), max(lengths)) == (4, 12)
    assert np.mean(lengths) == pytest.approx(8.0, rel=0.05)
    ends = {some[-1].conversation: some[-1].at for some in whole}
    begins = {some[0].conversation: some[0].at for some in whole}
    for one, at in begins.items():
        assert sum(begins[other] <= at <= ends[other] for other in begins) <= 4, one


def test_a_turn_holds_all_before_it_and_their_answers(long):
    for some in list(by_conversation(long).values())[:5]:
        assert [turn.prompt for turn in some[:2]] == [7040, 7980]
        for place, (one, after) in enumerate(pairwise(some)):
            assert one.place == place
            assert after.chain.elements.startswith(one.whole.elements)
            assert one.whole.tokens == one.prompt + OUTPUT_TOKENS


def test_conversations_of_a_tenant_share_its_prefix_and_nothing_else():
    first, second = list(by_conversation(tenant(REGIME, SKILL, turns=20, seed=0)).values())[:2]
    one, other = (np.frombuffer(some[0].chain.elements, dtype=np.int64) for some in (first, second))
    assert (one == other).tolist() == [True] * (6400 // BLOCK) + [False] * (640 // BLOCK)


def test_two_tenants_share_neither_prefix_nor_conversations():
    first = tenant(REGIME, SKILL, turns=200, seed=0)
    second = tenant(REGIME, SKILL, turns=200, seed=0, number=1, begins=first[-1].at)
    assert not by_conversation(first).keys() & by_conversation(second).keys()
    blocks = [
        {block for turn in some for block in np.frombuffer(turn.whole.elements, dtype=np.int64)}
        for some in (first, second)
    ]
    assert not blocks[0] & blocks[1]
    assert second[0].at >= first[-1].at
    assert [turn.prompt for turn in first] == [turn.prompt for turn in second]


def test_the_same_seed_gives_the_same_and_another_gives_another():
    some = [[turn.at for turn in tenant(REGIME, SKILL, turns=30, seed=s)] for s in (5, 5, 6)]
    assert some[0] == some[1] != some[2]


def test_turns_of_one_conversation_are_alike_in_difficulty(long):
    means = [
        np.mean([turn.question.difficulty for turn in some])
        for some in by_conversation(long).values()
        if len(some) >= 8
    ]
    assert np.var(means) == pytest.approx(0.8**2 + 0.9**2 / 10, rel=0.15)


def test_there_are_36_kinds_of_traffic():
    assert len(set(regimes())) == 36
    assert set(Counter(each.prefix for each in regimes()).values()) == {12}
    assert regimes()[0].name == "1k/3t/150/20s"


def test_every_tier_of_a_line_up_has_prices_a_cache_and_a_place():
    for lineup in lineups():
        assert list(lineup.cards) == list(lineup.caches)
        assert len(lineup.abilities) == len(lineup.cards)
        assert sorted(lineup.abilities) == list(lineup.abilities)
        rates = [card.rates for card in lineup.cards.values()]
        assert all(rate.cache_read < rate.input for rate in rates)
        outputs = [rate.output for rate in rates]
        assert sorted(outputs) == outputs


def test_only_caches_with_a_time_take_another_one():
    for before, after in zip(lineups(), lineups(60.0), strict=True):
        times = {card.ttl_seconds for card in after.caches.values()}
        if before.name.startswith("own"):
            assert after == before
        else:
            assert times == {360.0 if before.name.startswith("luna") else 60.0}


def test_a_token_of_a_machine_of_ones_own_costs_its_share_of_an_hour():
    rates = lineups()[-1].cards["8b"].rates
    assert rates.input == pytest.approx(Decimal("0.0333333"), rel=Decimal("0.0001"))


def test_more_at_a_time_come_sooner_one_after_the_other():
    alone, many = (
        tenant(replace(REGIME, live=live), SKILL, turns=300, seed=1)[-1].at for live in (1, 16)
    )
    assert alone > 8 * many
