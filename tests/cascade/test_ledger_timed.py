"""What an API that keeps a prefix for a time is expected to hold."""

import pytest

from tests.ledgers import BLOCK, blocks, chain, timed


def test_a_prefix_is_there_for_a_time_after_its_last_use():
    cache = timed()
    cache.began(chain("abc"))
    cache.clock.wait(10)
    assert cache.tokens(chain("abc")) == 3 * BLOCK
    assert cache.warm(chain("abc")).age_seconds == 10
    cache.clock.wait(1)
    assert cache.tokens(chain("abc")) == 0


def test_a_hit_renews_what_it_reads_and_nothing_else():
    cache = timed()
    cache.began(chain("abcd"))
    cache.clock.wait(8)
    cache.began(chain("abxy"))
    cache.clock.wait(5)
    assert cache.tokens(chain("abcd")) == 2 * BLOCK
    assert cache.tokens(chain("abxy")) == 4 * BLOCK


def test_asking_renews_nothing():
    cache = timed()
    cache.began(chain("abc"))
    for _ in range(6):
        cache.clock.wait(2)
        cache.warm(chain("abc"))
    assert cache.tokens(chain("abc")) == 0


def test_the_whole_prompt_can_be_read():
    cache = timed()
    cache.began(chain("abc", tokens=3 * BLOCK))
    assert cache.tokens(chain("abc", tokens=3 * BLOCK)) == 3 * BLOCK


def test_below_the_minimum_nothing_is_cached():
    cache = timed(minimum_tokens=3 * BLOCK)
    cache.began(chain("ab"))
    assert cache.tokens(chain("abcd")) == 0
    cache.began(chain("abcd"))
    assert cache.tokens(chain("abcd")) == 4 * BLOCK
    assert cache.tokens(chain("abxx")) == 0


def test_warm_tokens_come_in_the_steps_of_the_card():
    cache = timed(block=48)
    cache.began(chain("abcdefgh"))
    assert cache.tokens(chain("abcdefgh")) == 2 * 48
    assert cache.tokens(chain("abcdefghi")) == 2 * 48
    assert cache.tokens(chain("abx")) == 0


def test_other_prompts_push_nothing_out():
    cache = timed()
    cache.began(chain("abc"))
    for letter in "defghijkl":
        cache.ledger.began("t", chain(letter * 1000))
    assert cache.tokens(chain("abc")) == 3 * BLOCK


def test_our_own_bound_drops_the_least_recently_used():
    cache = timed(max_blocks=5)
    cache.began(chain("abc"), chain("xyz"))
    assert cache.tokens(chain("abc")) == 2 * BLOCK
    assert cache.tokens(chain("xyz")) == 3 * BLOCK


def test_a_prefix_stays_for_the_time_of_the_card():
    cache = timed()
    cache.began(chain("a"))
    assert cache.ledger.residence_seconds("t") == 10.5


def test_what_is_expired_takes_no_memory_for_long():
    cache = timed()
    for number in range(50):
        cache.ledger.began("t", chain(chr(48 + number) * 3))
    cache.clock.wait(60)
    for number in range(5):
        cache.ledger.began("t", chain(chr(97 + number)))
    assert cache.ledger.victim_age_seconds("t") == 0


def test_an_expected_hit_that_did_not_come_lowers_the_next_expectation_a_little():
    cache = timed()
    long = chain("a" * 100)
    cache.began(long)
    cache.call(long, 0)
    assert cache.tokens(long) == 1520, "95 % of 1,600"
    assert cache.tokens(chain("a" * 50)) == 760, "of all prompts alike"


def test_the_share_of_hits_settles_at_what_is_reported():
    cache = timed()
    long = chain("a" * 100)
    cache.began(long)
    for number in range(200):
        cache.call(long, (number % 2) * 1600)
    assert cache.tokens(long) == pytest.approx(800, abs=50)
    for _ in range(100):
        cache.call(long, 1600)
    assert cache.tokens(long) > 1580


def test_a_cold_request_says_nothing_of_the_share():
    cache = timed()
    for letter in "abcdef":
        cache.call(chain(letter * 10), 0)
    assert cache.tokens(chain("a" * 10)) == 10 * BLOCK


def test_requests_that_were_sent_in_parallel_say_nothing_of_the_share():
    cache = timed()
    prompts = [chain("abc" + str(number)) for number in range(5)]
    for prompt in prompts:
        cache.warm(prompt)
    cache.began(*prompts)
    for prompt in prompts:
        cache.reported(prompt, 0)
    assert cache.tokens(chain("abc0")) == 4 * BLOCK


def test_a_report_of_what_was_not_expected_makes_it_warm():
    cache = timed()
    cache.reported(chain("abcd"), 2 * BLOCK)
    assert cache.tokens(chain("abcd")) == 2 * BLOCK


@pytest.mark.parametrize("make", [blocks, timed])
def test_an_estimate_is_marked_as_such(make):
    cache = make()
    cache.call(chain("abc"), None)
    assert cache.warm(chain("abc")).estimated
    cache.call(chain("abc"), 3 * BLOCK)
    assert not cache.warm(chain("abc")).estimated


def test_what_is_held_is_what_has_not_expired():
    cache = timed()
    cache.began(chain("abc"))
    cache.clock.wait(8)
    cache.began(chain("abxy"))
    assert cache.ledger.held_tokens("t") == 5 * BLOCK
    cache.clock.wait(5)
    assert cache.ledger.held_tokens("t") == 4 * BLOCK
