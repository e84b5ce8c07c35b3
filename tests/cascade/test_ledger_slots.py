"""What the slots of a llama.cpp server are expected to hold, and its host's memory."""

import pytest

from tests.ledgers import ids, slots


def test_a_slot_holds_the_last_prompt_and_its_answer_to_the_token():
    cache = slots()
    cache.began(ids("hello"))
    assert cache.tokens(ids("hello you")) == 5
    cache.ended(ids("hello yo"))
    assert cache.tokens(ids("hello you")) == 8
    assert cache.tokens(ids("help")) == 3


def test_the_last_token_is_always_computed():
    cache = slots()
    cache.began(ids("hello"))
    cache.ended(ids("hello"))
    assert cache.tokens(ids("hello")) == 4


def test_a_prompt_goes_to_the_slot_that_shares_the_most():
    cache = slots(slots=3)
    cache.began(ids("aaaa"), ids("aabb"), ids("cccc"))
    cache.ended(ids("aaaa!"), ids("aabb!"), ids("cccc!"))
    assert cache.tokens(ids("aabbcc")) == 4
    cache.began(ids("aabbcc"))
    cache.ended(ids("aabbccdd"))
    assert cache.tokens(ids("aaaax")) == 4
    assert cache.tokens(ids("ccccx")) == 4
    assert cache.tokens(ids("aabbccddx")) == 8


def test_a_tenth_of_the_prompt_is_too_little_to_choose_a_slot_by():
    cache = slots()
    for prompt in ("abcdefghij", "zyxwvutsrq"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    cache.began(ids("z" + "." * 9))
    assert cache.tokens(ids("abcdefghij!?")) == 0, "it was the least recently used"
    assert cache.tokens(ids("zyxwvutsrq!?")) == 11


def test_without_a_likeness_the_least_recently_used_slot_is_taken():
    cache = slots()
    for prompt in ("aaaa", "bbbb", "cccc"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert [cache.tokens(ids(prompt + "!?")) for prompt in ("aaaa", "bbbb", "cccc")] == [0, 5, 5]


def test_requests_at_the_same_time_go_to_different_slots():
    cache = slots()
    cache.began(ids("system one"), ids("system two"))
    cache.ended(ids("system one!"), ids("system two!"))
    assert cache.tokens(ids("system one!?")) == 11
    assert cache.tokens(ids("system two!?")) == 11


def test_a_slot_whose_prompt_goes_on_is_idle_even_if_its_end_was_not_told():
    cache = slots()
    cache.began(ids("cancelled"))
    assert cache.tokens(ids("cancelled, then again")) == 9


def test_when_all_slots_are_at_work_one_of_them_will_be_free():
    cache = slots()
    cache.began(ids("aaaa"), ids("bbbb"))
    assert cache.tokens(ids("bbxx")) == 2


def test_salts_share_slots_but_nothing_in_them():
    cache = slots(slots=1)
    cache.began(ids("hello", salt="one"))
    assert cache.tokens(ids("hello", salt="two")) == 0
    cache.began(ids("hello", salt="two"))
    assert cache.tokens(ids("hello", salt="one")) == 0


def test_an_answer_whose_beginning_was_not_told_takes_a_slot_all_the_same():
    cache = slots()
    cache.ended(ids("hello"))
    assert cache.tokens(ids("hello you")) == 5


def test_the_host_keeps_a_prompt_that_leaves_its_slot_and_gives_it_back():
    cache = slots(slots=1, capacity_tokens=100)
    for prompt in ("aaaa", "bbbb"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("aaaa!?")) == 5
    cache.began(ids("aaaa!?"))
    assert cache.tokens(ids("bbbb!?")) == 5
    assert cache.tokens(ids("aaaa!?x")) == 6


def test_a_prompt_of_which_a_slot_keeps_most_is_not_looked_for_at_the_host():
    cache = slots(slots=1, capacity_tokens=100)
    for prompt in ("aaaabbbb", "aaaacc"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("aaaabbbb!")) == 4, "4 of the slot's 7 tokens are kept"


def test_a_saved_prompt_that_would_mostly_be_cut_off_is_not_restored():
    cache = slots(slots=1, capacity_tokens=100)
    for prompt in ("ab" + "x" * 20, "zzzz"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("abc")) == 0
    assert cache.tokens(ids("ab" + "x" * 10)) == 11


def test_the_host_drops_what_it_saved_first():
    cache = slots(slots=1, capacity_tokens=15)
    for prompt in ("aaaa", "bbbb", "cccc", "dddd"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    held = [cache.tokens(ids(prompt + "!?")) for prompt in ("aaaa", "bbbb", "cccc", "dddd")]
    assert held == [0, 5, 5, 5]


def test_the_host_does_not_keep_what_it_cannot_hold():
    cache = slots(slots=1, capacity_tokens=6)
    for prompt in ("aa", "bbbbbb", "cc"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("bbbbbb!?")) == 0
    assert cache.tokens(ids("aa!?")) == 3


def test_prompts_of_idle_slots_are_copied_to_the_host_whenever_another_begins():
    cache = slots(capacity_tokens=100)
    for prompt in ("aabb", "zz", "aacccc", "yy"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("aabb!?")) == 5, "its slot has gone on with aacccc"


def test_saving_a_prompt_may_push_out_the_one_that_was_wanted():
    cache = slots(slots=1, capacity_tokens=8)
    for prompt in ("aaaa", "bbbb"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    assert cache.tokens(ids("aaaa!?")) == 0, "there is no room for both"


def test_a_report_below_the_expectation_drops_what_is_as_old():
    cache = slots(slots=3)
    for prompt in ("aaaa", "bbbb", "cccc"):
        cache.began(ids(prompt))
        cache.ended(ids(prompt + "!"))
    cache.call(ids("bbbb!?"), 0)
    assert cache.tokens(ids("aaaa!?")) == 0
    assert cache.tokens(ids("cccc!?")) == 5
    assert cache.tokens(ids("bbbb!?x")) == 6


def test_a_report_counts_only_against_what_was_there_when_it_was_asked():
    cache = slots(slots=3)
    cache.began(ids("aaaa"))
    cache.ended(ids("aaaa!"))
    cache.warm(ids("bbbbx"))
    cache.began(ids("bbbb"))
    cache.ended(ids("bbbb!"))
    cache.began(ids("bbbbx"))
    cache.reported(ids("bbbbx"), 0)
    assert cache.tokens(ids("aaaa!?")) == 5


def test_without_a_report_the_entry_stays_as_an_estimate_until_a_report_covers_it():
    cache = slots()
    cache.call(ids("aaaa"), None)
    assert cache.warm(ids("aaaa!")).estimated
    cache.call(ids("aaaa!"), 4)
    assert not cache.warm(ids("aaaa!?")).estimated


def test_the_residence_is_the_age_of_prompts_that_are_lost():
    cache = slots(slots=1)
    cache.began(ids("aaaa"))
    cache.ended(ids("aaaa!"))
    assert cache.ledger.residence_seconds("t") is None
    assert cache.ledger.victim_age_seconds("t") == 0
    cache.clock.wait(29)
    cache.began(ids("bbbb"))
    assert cache.ledger.residence_seconds("t") == pytest.approx(30)


def test_a_slot_that_is_empty_is_taken_before_anything_is_lost():
    cache = slots()
    cache.began(ids("aaaa"))
    assert cache.ledger.victim_age_seconds("t") is None


def test_what_is_held_is_what_the_slots_and_the_hosts_memory_have():
    cache = slots(slots=2, capacity_tokens=100)
    assert cache.ledger.held_tokens("t") == 0
    cache.began(ids("hello"))
    cache.ended(ids("hello you"))
    assert cache.ledger.held_tokens("t") == 9
    cache.began(ids("other"))
    assert cache.ledger.held_tokens("t") == 9 + 5 + 9  # the first is copied to the host as well
