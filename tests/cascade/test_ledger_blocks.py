"""What a replica with a cache of full blocks is expected to hold, and what a report changes."""

import pytest

from cascade.caches import CacheCard
from cascade.ledger import Ledger, Warm
from tests.ledgers import BLOCK, Clock, blocks, chain


def test_nothing_is_warm_before_anything_was_asked():
    assert blocks().warm(chain("ab")) == Warm(tokens=0, age_seconds=None, estimated=False)


def test_a_tier_without_a_card_has_no_cache():
    ledger = Ledger({})
    ledger.began("t", chain("ab"))
    ledger.reported("t", chain("ab"), 32)
    assert ledger.warm("t", chain("ab")) == Warm()
    assert ledger.residence_seconds("t") is None


def test_the_blocks_from_the_first_on_are_shared():
    cache = blocks()
    cache.began(chain("abcd"))
    assert cache.tokens(chain("abcd")) == 4 * BLOCK
    assert cache.tokens(chain("abxd")) == 2 * BLOCK
    assert cache.tokens(chain("xbcd")) == 0
    assert cache.tokens(chain("abcdef")) == 4 * BLOCK


def test_the_last_token_is_always_computed():
    cache = blocks()
    cache.began(chain("abc"))
    assert cache.tokens(chain("abc", tokens=3 * BLOCK)) == 2 * BLOCK
    assert cache.tokens(chain("abc", tokens=3 * BLOCK + 1)) == 3 * BLOCK


def test_salts_share_no_blocks_but_the_memory():
    cache = blocks(capacity_tokens=4 * BLOCK)
    cache.began(chain("abc", salt="one"))
    assert cache.tokens(chain("abc", salt="two")) == 0
    cache.began(chain("xyz", salt="two"))
    assert cache.tokens(chain("abc", salt="one")) == BLOCK


def test_first_requests_in_parallel_are_all_cold():
    cache = blocks()
    assert [cache.tokens(chain("abc")) for _ in range(10)] == [0] * 10
    cache.began(chain("abc"))
    assert cache.tokens(chain("abc")) == 3 * BLOCK


def test_an_answer_that_ended_is_warm_with_its_prompt():
    cache = blocks()
    cache.began(chain("ab"))
    assert cache.tokens(chain("abcd")) == 2 * BLOCK
    cache.ended(chain("abc"))
    assert cache.tokens(chain("abcd")) == 3 * BLOCK


def test_the_least_recently_used_goes_first_and_of_one_prompt_the_tail():
    cache = blocks(capacity_tokens=6 * BLOCK)
    cache.began(chain("abc"), chain("xyz"))
    cache.began(chain("q"))
    assert cache.tokens(chain("abc")) == 2 * BLOCK
    assert cache.tokens(chain("xyz")) == 3 * BLOCK
    cache.began(chain("ab"), chain("rs"))
    assert cache.tokens(chain("abc")) == 2 * BLOCK
    assert cache.tokens(chain("xyz")) == BLOCK


def test_a_shared_beginning_is_kept_once_and_outlives_its_tails():
    cache = blocks(capacity_tokens=4 * BLOCK)
    cache.began(chain("aab"), chain("aac"))
    assert cache.tokens(chain("aab")) == 3 * BLOCK
    cache.began(chain("aad"))
    assert cache.tokens(chain("aab")) == 2 * BLOCK
    assert cache.tokens(chain("aac")) == 3 * BLOCK
    cache.began(chain("xy"))
    assert cache.tokens(chain("aad")) == 2 * BLOCK


def test_the_age_is_that_of_the_longest_held_prefix():
    cache = blocks()
    cache.began(chain("abcd"))
    cache.clock.wait(30)
    cache.began(chain("abxy"))
    cache.clock.wait(4)
    assert cache.warm(chain("ab")).age_seconds == 4
    assert cache.warm(chain("abcd")).age_seconds == 35


def test_replicas_hold_what_they_were_asked_and_without_one_the_best_counts():
    ledger = Ledger({"t": CacheCard(kind="blocks", block=BLOCK)}, clock=Clock())
    ledger.began("t", chain("ab"), replica="one")
    ledger.began("t", chain("abcd"), replica="two")
    assert ledger.warm("t", chain("abcd"), replica="one").tokens == 2 * BLOCK
    assert ledger.warm("t", chain("abcd"), replica="two").tokens == 4 * BLOCK
    assert ledger.warm("t", chain("abcd"), replica="three").tokens == 0
    assert ledger.warm("t", chain("abcd")).tokens == 4 * BLOCK


def test_a_prompt_under_the_minimum_is_not_cached():
    cache = blocks(minimum_tokens=3 * BLOCK)
    cache.began(chain("ab"))
    assert cache.tokens(chain("abcd")) == 0
    cache.began(chain("abcd"))
    assert cache.tokens(chain("abcd")) == 4 * BLOCK
    assert cache.tokens(chain("abxx")) == 0


def test_a_report_below_the_expectation_drops_all_that_is_as_old():
    cache = blocks()
    cache.began(chain("old"), chain("abcd"))
    cache.clock.wait(60)
    cache.began(chain("new"))
    cache.call(chain("abcdx"), 2 * BLOCK)
    assert cache.tokens(chain("old")) == 0
    assert cache.tokens(chain("new")) == 3 * BLOCK
    assert cache.tokens(chain("abcdx")) == 5 * BLOCK, "the call itself has filled it again"


def test_the_part_that_a_report_confirms_says_nothing_of_what_is_older():
    cache = blocks()
    cache.began(chain("old"))
    cache.began(chain("abcd"))
    cache.began(chain("ab"))
    cache.began(chain("new"))
    cache.call(chain("abcd"), 4 * BLOCK)
    assert cache.tokens(chain("old")) == 3 * BLOCK


def test_a_request_that_was_sent_before_another_began_proves_nothing():
    cache = blocks()
    cache.began(chain("old"))
    first, second = chain("abcd", tokens=70), chain("abcd", tokens=70)
    cache.warm(first)
    cache.warm(second)
    for each in (first, second):
        cache.began(each)
    for each in (first, second):
        cache.reported(each, 0)
    assert cache.tokens(chain("old")) == 3 * BLOCK
    assert cache.tokens(first) == 4 * BLOCK


def test_a_report_below_the_expectation_counts_against_when_it_was_asked():
    cache = blocks()
    cache.began(chain("old"), chain("abcd"))
    cache.warm(chain("abcx"))
    cache.began(chain("abcy"), chain("abcx"))
    cache.reported(chain("abcx"), 0)
    assert cache.tokens(chain("old")) == 3 * BLOCK, "its blocks were used by another since"


def test_a_report_below_the_expectation_of_a_prompt_that_nobody_asked_about_proves_nothing():
    cache = blocks()
    cache.began(chain("old"), chain("abcd"))
    for _ in range(2):
        cache.reported(chain("abcd"), 0)
    assert cache.tokens(chain("old")) == 3 * BLOCK


def test_a_report_above_the_expectation_means_that_it_is_warm_anyway():
    cache = blocks()
    cache.reported(chain("abcd"), 3 * BLOCK)
    assert cache.tokens(chain("abcd")) == 3 * BLOCK


def test_the_capacity_is_learned_where_the_card_does_not_say():
    cache = blocks()
    for letter in "abcdefgh":
        cache.began(chain(letter * 10))
    assert cache.ledger.residence_seconds("t") is None
    cache.call(chain("e" * 10), 0)
    cache.began(*(chain(letter * 10) for letter in "ijklmnop"))
    held = [letter for letter in "abcdefghijklmnop" if cache.tokens(chain(letter * 10))]
    assert "".join(held) == "klmnop", "half way from the 80 that were held to the 40 still there"


def test_a_learned_capacity_rises_again_when_more_is_there():
    cache = blocks()
    for letter in "abcdefgh":
        cache.began(chain(letter * 10))
    cache.call(chain("h" * 10), 0)
    cache.began(*(chain(letter * 10) for letter in "ijklmnop"))
    before = sum(cache.tokens(chain(letter * 10)) for letter in "abcdefghijklmnop")
    for letter in "abc":
        cache.call(chain(letter * 10), 10 * BLOCK)
    cache.began(*(chain(letter * 10) for letter in "ijklmnop"))
    assert sum(cache.tokens(chain(letter * 10)) for letter in "abcdefghijklmnop") > before


def test_a_stated_capacity_is_not_learned():
    cache = blocks(capacity_tokens=80 * BLOCK)
    for letter in "abcdefgh":
        cache.began(chain(letter * 10))
    cache.call(chain("h" * 10), 0)
    cache.began(*(chain(letter * 10) for letter in "ijklmnop"))
    assert all(cache.tokens(chain(letter * 10)) == 10 * BLOCK for letter in "ijklmnop")


def test_without_a_report_the_entry_stays_as_an_estimate_until_a_report_covers_it():
    cache = blocks()
    cache.call(chain("abc"), None)
    assert cache.tokens(chain("abc")) == 3 * BLOCK
    assert cache.warm(chain("abc")).estimated
    assert cache.warm(chain("abcd")).estimated
    cache.call(chain("xyz"), 0)
    assert cache.warm(chain("abc")).estimated
    assert not cache.warm(chain("xyz")).estimated
    cache.call(chain("abcd"), 3 * BLOCK)
    assert not cache.warm(chain("abc")).estimated


def test_estimated_tokens_may_differ_by_a_quarter_before_they_count_as_a_contradiction():
    for cached, left in ((64, 3), (40, 0)):
        cache = blocks()
        cache.began(chain("old", exact=False), chain("abcde", exact=False))
        cache.call(chain("abcdex", exact=False), cached)
        assert cache.tokens(chain("old")) == left * BLOCK


def test_the_residence_is_the_age_of_what_is_dropped():
    cache = blocks(capacity_tokens=10 * BLOCK)
    cache.began(chain("abcde"))
    assert cache.ledger.residence_seconds("t") is None, "there is room"
    cache.clock.wait(99)
    cache.began(chain("vwxyz"))
    cache.began(chain("p"))
    assert cache.ledger.residence_seconds("t") == pytest.approx(101)
    for letter in "qrstu":
        cache.began(chain(letter))
    assert 80 < cache.ledger.residence_seconds("t") < 105


def test_the_residence_without_a_replica_is_the_mean_of_those_that_know():
    card = CacheCard(kind="blocks", block=BLOCK, capacity_tokens=BLOCK)
    clock = Clock()
    ledger = Ledger({"t": card}, clock=clock)
    for wait, replica in ((10, "one"), (20, "two")):
        ledger.began("t", chain("a"), replica=replica)
        clock.wait(wait)
        ledger.began("t", chain("b"), replica=replica)
    ledger.began("t", chain(""), replica="three")
    assert ledger.residence_seconds("t", replica="one") == pytest.approx(10)
    assert ledger.residence_seconds("t", replica="three") is None
    assert ledger.residence_seconds("t", replica="four") is None
    assert ledger.residence_seconds("t") == pytest.approx(15)


def test_the_next_victim_is_as_old_as_its_last_use():
    cache = blocks(capacity_tokens=10 * BLOCK)
    assert cache.ledger.victim_age_seconds("t") is None
    cache.began(chain("abc"))
    cache.clock.wait(7)
    cache.began(chain("xyz"))
    assert cache.ledger.victim_age_seconds("t") == pytest.approx(8)


def test_memory_is_bounded_where_the_capacity_is_not_known():
    cache = blocks(max_blocks=5)
    cache.began(chain("abcd"), chain("wxyz"))
    assert cache.tokens(chain("abcd")) == BLOCK
    assert cache.tokens(chain("wxyz")) == 4 * BLOCK


def test_two_uses_at_the_same_moment_are_still_one_after_the_other():
    clock = Clock()
    card = CacheCard(kind="blocks", block=BLOCK, capacity_tokens=4 * BLOCK)
    ledger = Ledger({"t": card}, clock=clock)
    for name in ("ab", "cd", "ef"):
        ledger.began("t", chain(name))
    assert [ledger.warm("t", chain(name)).tokens for name in ("ab", "cd", "ef")] == [0, 32, 32]


def test_what_all_replicas_hold_is_told_in_tokens():
    cache = blocks(capacity_tokens=4 * BLOCK)
    assert cache.ledger.held_tokens("unheard of") is None
    cache.began(chain("abc"), chain("abxyz"))
    assert cache.ledger.held_tokens("t") == 4 * BLOCK
    cache.ledger.began("t", chain("q"), replica="another")
    assert cache.ledger.held_tokens("t") == 5 * BLOCK


def test_of_equal_prompts_under_way_the_firsts_report_says_nothing_of_what_it_left_itself():
    clock = Clock()
    ledger = Ledger({"t": CacheCard(kind="blocks", block=BLOCK)}, clock=clock)
    others = [chain(text) for text in ("abcd", "efgh", "ijkl")]

    def goes_out(prompt, call=""):
        clock.wait(1)
        ledger.warm("t", prompt, call=call)
        clock.wait(1)
        ledger.began("t", prompt, call=call)

    def reports(prompt, cached, call=""):
        clock.wait(1)
        ledger.reported("t", prompt, cached, call=call)
        ledger.ended("t", prompt)

    for other in others:
        goes_out(other)
        reports(other, 0)
    same = chain("mnop")
    goes_out(same, "first")
    goes_out(same, "second")
    reports(same, 0, "first")
    reports(same, 4 * BLOCK, "second")
    assert [ledger.warm("t", other).tokens for other in others] == [4 * BLOCK] * 3
    assert ledger.residence_seconds("t") is None


def test_what_each_replica_holds_adds_up_to_what_the_tier_does():
    ledger = Ledger({"t": CacheCard(kind="blocks", block=BLOCK)})
    assert ledger.held_at("t") == {}
    ledger.began("t", chain("abc"), replica="one")
    ledger.began("t", chain("ab"), replica="two")
    assert ledger.held_at("t") == {"one": 3 * BLOCK, "two": 2 * BLOCK}
    assert ledger.held_tokens("t") == 5 * BLOCK
    assert ledger.held_at("unknown") == {}
