"""A report that misses only what an answer's text was cut into says nothing of what is gone."""

import pytest

from tests.ledgers import BLOCK, blocks, chain, ids, slots


def answered(cache, prompt, whole):
    """A call whose answer is known as text only."""
    cache.warm(prompt)
    cache.began(prompt)
    cache.ledger.ended("t", whole, prompt=prompt)


def test_blocks_of_an_answer_that_are_missing_leave_older_prompts_warm():
    cache = blocks()
    answered(cache, chain("abc"), chain("abcd"))
    answered(cache, chain("xyz"), chain("xyzw"))
    cache.call(chain("xyzwv"), 3 * BLOCK)
    assert cache.tokens(chain("abcde")) == 4 * BLOCK
    assert cache.tokens(chain("xyzwvu")) == 5 * BLOCK


def test_blocks_of_a_prompt_that_are_missing_are_gone_and_so_is_what_is_older():
    cache = blocks()
    answered(cache, chain("abc"), chain("abcd"))
    answered(cache, chain("xyz"), chain("xyzw"))
    cache.call(chain("xyzwv"), 2 * BLOCK)
    assert cache.tokens(chain("abcde")) == 0


def test_without_its_prompt_all_of_an_answer_is_certain():
    cache = blocks()
    cache.call(chain("abc"), 0)
    cache.call(chain("xyz"), 0)
    cache.ended(chain("xyzw"))
    cache.call(chain("xyzwv"), 3 * BLOCK)
    assert cache.tokens(chain("abc")) == 0


@pytest.mark.parametrize(("read", "left"), [(5, 5), (4, 5), (3, 0)])
def test_tokens_of_an_answer_that_are_missing_leave_older_slots_warm(read, left):
    cache = slots()
    answered(cache, ids("aaaa"), ids("aaaa!"))
    answered(cache, ids("bbbb"), ids("bbbb??"))
    cache.call(ids("bbbb??b"), read)
    assert cache.tokens(ids("aaaa!a")) == left


def test_an_answer_that_has_become_part_of_a_prompt_is_certain():
    cache = slots()
    answered(cache, ids("aaaa"), ids("aaaa!"))
    answered(cache, ids("bbbb"), ids("bbbb??"))
    answered(cache, ids("bbbb??b"), ids("bbbb??b!"))
    cache.call(ids("bbbb??b!b"), 5)
    assert cache.tokens(ids("aaaa!a")) == 0


def test_what_the_hosts_memory_keeps_of_an_answer_is_no_more_certain():
    cache = slots(slots=1, capacity_tokens=100)
    answered(cache, ids("aaaa"), ids("aaaa!"))
    answered(cache, ids("bbbb"), ids("bbbb??"))
    answered(cache, ids("cccc"), ids("cccc!"))
    cache.call(ids("bbbb??b"), 4)
    assert cache.tokens(ids("aaaa!a")) == 5


def test_an_answer_whose_tokens_are_not_known_leaves_its_slot_idle_and_no_other_changed():
    cache = slots()
    answered(cache, ids("aaaa"), ids("aaaa!"))
    answered(cache, ids("bbbb"), ids("bbbb"))
    assert cache.tokens(ids("aaaa!a")) == 5
    cache.began(ids("bbbx"))
    assert cache.tokens(ids("aaaa!a")) == 5, "the prompt went to the slot that it shares with"
