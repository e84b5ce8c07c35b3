"""A tree of runs: a prompt costs as much as there are places where prompts part, however long."""

import pytest

from cascade.ledger.runs import RunTree, common
from tests.ledgers import chain


def used(*words):
    tree = RunTree()
    for now, word in enumerate(words):
        tree.use(chain(word), now)
    return tree


def test_a_conversation_that_grows_is_one_run():
    tree = used("ab", "abcd", "abcdef")
    assert (tree.runs, tree.size) == (1, 6)


def test_a_run_is_split_where_prompts_part():
    tree = used("abcd", "abxy")
    assert (tree.runs, tree.size) == (3, 6)


def test_a_prompt_that_ends_within_a_run_splits_it_there():
    tree = used("abcd", "ab")
    assert tree.runs == 2
    assert tree.trail(chain("abcd")) == [(2, 1), (4, 0)]


def test_the_trail_says_what_was_known_before_a_use():
    tree = used("abcd")
    assert tree.use(chain("abxy"), 5) == [(2, 0)]
    assert tree.use(chain("abxyz"), 6) == [(2, 5), (4, 5)]


def test_the_oldest_is_trimmed_first_and_only_as_far_as_needed():
    tree = used("abcd", "xyz")
    assert tree.oldest == 0
    assert tree.trim(5) == [(2, 0)]
    assert tree.trim(2) == [(2, 0), (1, 1)]
    assert (tree.runs, tree.size, tree.oldest) == (1, 2, 1)


def test_what_was_not_used_since_is_forgotten_and_only_so_many_runs_at_a_time():
    tree = used("a", "b", "c", "d")
    tree.forget(1, at_most=1)
    assert tree.size == 3
    tree.forget(1)
    assert tree.size == 2
    tree.forget(9)
    assert (tree.runs, tree.size, tree.oldest) == (0, 0, None)


def test_salts_that_hold_nothing_any_more_take_no_memory():
    tree = RunTree()
    for number in range(100):
        tree.use(chain("abc", salt=str(number)), number)
    tree.use(chain("", salt="empty"), 100)
    tree.trim(3)
    assert len(tree._roots) == 1  # noqa: SLF001


def test_elements_of_different_widths_are_never_taken_for_each_other():
    tree = used("abcd")
    wide = chain("abcd")
    object.__setattr__(wide, "width", 2)
    assert tree.find(wide).length == 0
    tree.use(wide, 3)
    assert (tree.runs, tree.size) == (2, 6)


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("start", [0, 3])
def test_the_common_beginning_ends_at_the_last_whole_element(width, start):
    one = bytes(start * width) + b"".join(n.to_bytes(width, "big") for n in range(1, 60))
    for same in range(59):
        other = bytearray(one[start * width :])
        other[same * width + width - 1] ^= 128
        assert common(one, start * width, bytes(other), width) == same * width
    assert common(one, start * width, one[start * width :], width) == 59 * width
