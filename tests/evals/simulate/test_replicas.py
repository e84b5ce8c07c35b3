"""The simulator of replica routing: small runs, and what can be worked out by hand."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest

from cascade.cache_economics import prefill_seconds
from evals.simulate.published import PUBLISHED_CHAT, PUBLISHED_INFINITE, PUBLISHED_QUESTIONS
from evals.simulate.replicas import H100, QWEN3_8B, Setting, infinite_cache, simulate
from evals.simulate.workloads import Chat, Questions

SMALL_CHAT = Chat(warm_up=2_500)
SMALL_QUESTIONS = Questions(warm_up=1_500)


def run(workload, rule, replicas, accounting="own", *, requests=3_000, seed=0, **more):
    setting = Setting(
        workload=workload,
        rule=rule,
        replicas=replicas,
        accounting=accounting,
        requests=requests,
        **more,
    )
    return simulate(setting, seed)


@pytest.mark.parametrize(("replicas", "percent"), [(4, 25.80), (8, 39.34)])
def test_without_end_of_the_cache_the_closed_form_is_the_published_number(replicas, percent):
    exactly = 100 * infinite_cache(Chat(), replicas)
    assert exactly == pytest.approx(percent, abs=0.006)
    assert exactly == pytest.approx(PUBLISHED_INFINITE[replicas].recomputed, abs=0.1)


def test_one_server_without_end_computes_what_the_users_say():
    assert infinite_cache(Chat(), 1) == pytest.approx(12 * 200 / sum(range(2_200, 8_801, 600)))


def test_the_closed_form_holds_for_two_turns_by_hand():
    # The second of two servers has the first turn with probability 1/2, else the system prompt.
    two = Chat(turns=2)
    cold = 200 + (2_800 - (2_600 + 2_000) / 2)
    assert infinite_cache(two, 2) == pytest.approx(cold / (2_200 + 2_800))


def test_the_simulator_comes_to_the_closed_form():
    found = run(SMALL_CHAT, "random", 2, "shared", idle_tokens=None)
    assert found.recomputed == pytest.approx(infinite_cache(Chat(), 2), abs=0.015)


@pytest.mark.parametrize("cell", [(1, "round_robin"), (2, "round_robin"), (2, "session")])
def test_a_small_run_is_near_the_published_share(cell):
    replicas, rule = cell
    found = 100 * run(SMALL_CHAT, rule, replicas).recomputed
    assert found == pytest.approx(PUBLISHED_CHAT[replicas, rule].recomputed, abs=2.0)


def test_sharing_the_system_prompts_blocks_leaves_room_for_more():
    shares = [run(SMALL_CHAT, "session", 2, kind).recomputed for kind in ("own", "shared")]
    assert shares[1] < shares[0] - 0.05


def test_hashed_documents_are_unevenly_asked_and_drawn_servers_compute_most():
    drawn = run(SMALL_QUESTIONS, "random", 8, "shared")
    hashed = run(SMALL_QUESTIONS, "prefix_hash", 8, "shared")
    assert 100 * drawn.recomputed == pytest.approx(PUBLISHED_QUESTIONS["random"].recomputed, abs=2)
    assert hashed.recomputed < drawn.recomputed / 2
    assert hashed.busiest_requests > 1.3
    assert drawn.busiest_requests < 1.15


def test_our_rule_waits_less_than_the_published_one_and_computes_no_more():
    published = run(SMALL_QUESTIONS, "cache_aware", 8, "shared", seed=100)
    ours = run(SMALL_QUESTIONS, "balanced_cache", 8, "shared", seed=100)
    assert ours.recomputed < published.recomputed
    assert ours.busiest_prefill < published.busiest_prefill
    assert ours.first_token_seconds[1] < 0.75 * published.first_token_seconds[1]


def test_one_document_on_one_server_is_computed_once():
    one = replace(SMALL_QUESTIONS, documents=1, warm_up=1, per_second=0.01)
    found = run(one, "round_robin", 1, "shared", requests=50)
    whole, warm = 15_700, 15_500 // 16 * 16  # the block in which the question begins is not shared
    seconds = prefill_seconds(QWEN3_8B, H100, tokens=whole, cached=warm)
    assert found.recomputed == pytest.approx((whole - warm) / whole)
    assert found.dollars == pytest.approx(4.29 / 3600 * seconds * 1e6)
    assert found.first_token_seconds == pytest.approx((seconds, seconds))
    assert (found.busiest_requests, found.busiest_prefill) == (1, 1)


def test_who_comes_while_a_prompt_is_computed_waits():
    one = replace(SMALL_QUESTIONS, documents=1, warm_up=1)
    alone, crowded = (
        run(replace(one, per_second=rate), "random", 1, "shared", requests=500)
        for rate in (0.01, 60.0)
    )
    assert crowded.recomputed == alone.recomputed
    assert crowded.first_token_seconds[1] > 2 * alone.first_token_seconds[1]


def test_the_same_seed_gives_the_same_and_another_gives_another():
    some = [run(SMALL_CHAT, "session", 2, requests=500, seed=seed) for seed in (3, 3, 4)]
    assert some[0] == some[1] != some[2]


def asks(workload, number, accounting="shared"):
    chance = random.Random(0)  # noqa: S311 - made-up traffic
    return list(itertools.islice(workload.asks(chance, accounting), number))


def test_a_turn_begins_with_the_turn_before_it_and_its_answer():
    chat = Chat(live=1, turns=3)
    turns = asks(chat, 9)
    begun = next(i for i, each in enumerate(turns) if each.prompt.tokens == 2_200)
    first, second, third, new = turns[begun : begun + 4]
    assert [t.prompt.tokens for t in (first, second, third)] == [2_200, 2_800, 3_400]
    assert len({t.prompt.session for t in (first, second, third)}) == 1
    assert second.chain.elements.startswith(first.kept.elements)
    assert third.chain.elements.startswith(second.kept.elements)
    assert new.prompt.session != first.prompt.session
    system = 2_000 // 16 * 8
    assert new.chain.elements[:system] == first.chain.elements[:system]
    assert new.chain.elements[system : system + 8] != first.chain.elements[system : system + 8]
    assert Chat().prompt_tokens(12) == 8_800


def test_prompts_of_their_own_share_nothing():
    heads = {each.chain.elements[:8] for each in asks(Chat(turns=1, live=5), 50, "own")}
    assert len(heads) == 50


def test_documents_are_asked_for_by_their_rank():
    seen = Counter(each.prompt.prefix for each in asks(Questions(), 5_000))
    ranked = [count for _, count in seen.most_common()]
    assert ranked[0] / 5_000 == pytest.approx(0.106, abs=0.02)
    assert ranked[0] / ranked[9] == pytest.approx(10**0.85, rel=0.3)
