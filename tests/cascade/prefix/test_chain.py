"""Chains share what their prompts share, in full blocks, and nothing between salts."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.prefix import Chained, answer_rendering, chain_of_ids, chain_of_text, rendering
from tests import builders

IDS = st.lists(st.integers(0, 151_000), max_size=200)
BLOCKS = st.sampled_from([1, 2, 7, 16])
TEXTS = st.binary(max_size=600)


def test_a_chain_has_full_blocks_only():
    chain = chain_of_ids(range(35), block=16)
    assert (chain.blocks, chain.tokens, chain.width, chain.exact) == (2, 35, 8, True)
    assert chain_of_ids(range(15), block=16).elements == b""


def test_where_a_block_is_one_token_the_elements_are_the_ids():
    chain = chain_of_ids([7, 70_000], block=1)
    assert list(array("I", chain.elements)) == [7, 70_000]
    assert (chain.width, chain.blocks, chain.tokens) == (4, 2, 2)


def test_text_is_counted_by_its_bytes():
    chain = chain_of_text(b"x" * 200, tokens_per_byte=0.25)
    assert (chain.blocks, chain.block, chain.tokens, chain.exact) == (3, 16.0, 50, False)


def test_another_estimate_of_tokens_leaves_the_blocks_as_they_are():
    few, many = (chain_of_text(b"x" * 200, tokens_per_byte=each) for each in (0.2, 0.4))
    assert few.elements == many.elements
    assert few.shared_blocks(many) == 3


@given(IDS, BLOCKS)
def test_equal_prompts_have_equal_chains(ids, block):
    assert chain_of_ids(ids, block=block) == chain_of_ids(array("I", ids), block=block)


@given(IDS, IDS, BLOCKS)
def test_a_prompt_that_goes_on_from_another_shares_all_its_full_blocks(ids, more, block):
    short, long = chain_of_ids(ids, block=block), chain_of_ids(ids + more, block=block)
    assert long.elements.startswith(short.elements)
    assert long.shared_blocks(short) == short.shared_blocks(long) == len(ids) // block


@given(IDS.filter(bool), BLOCKS, st.data())
def test_a_change_at_a_token_leaves_the_full_blocks_before_it(ids, block, data):
    at = data.draw(st.integers(0, len(ids) - 1))
    changed = [*ids[:at], ids[at] + 1, *ids[at + 1 :]]
    mine, other = chain_of_ids(ids, block=block), chain_of_ids(changed, block=block)
    full = (at // block + 1) * block <= len(ids)
    assert mine.shared_blocks(other) == at // block
    if full and block > 1:
        width = mine.width
        later = slice(at // block * width, None)
        assert not {*_cut(mine.elements[later], width)} & {*_cut(other.elements[later], width)}


def _cut(elements, width):
    return [elements[start : start + width] for start in range(0, len(elements), width)]


@given(IDS, st.lists(st.integers(0, 200), max_size=4), BLOCKS)
def test_a_chain_that_grew_piece_by_piece_is_that_of_the_whole(ids, cuts, block):
    cuts = sorted(min(each, len(ids)) for each in cuts)
    chained, start = Chained.of_ids([], block=block, salt="s"), 0
    for end in [*cuts, len(ids)]:
        chained, start = chained.with_ids(ids[start:end]), end
    assert chained.chain == chain_of_ids(ids, block=block, salt="s")


@given(TEXTS, TEXTS, st.integers(1, 70))
def test_text_that_grew_has_the_chain_of_the_whole(text, more, size):
    options = {"tokens_per_byte": 0.3, "block_bytes": size, "salt": "s"}
    assert Chained.of_text(text, **options).with_text(more).chain == chain_of_text(
        text + more, **options
    )


def test_prompt_and_answer_are_how_the_next_prompt_begins():
    asked = builders.request()
    answer = builders.completion("It is 42, which is a little more than the half of 83.")
    sent_back = {"role": "assistant", "content": answer.text}
    after = replace(asked, messages=[*asked.messages, sent_back, {"role": "user", "content": "?"}])
    grown = Chained.of_text(rendering(asked), tokens_per_byte=0.25, block_bytes=16).with_text(
        answer_rendering(answer)
    )
    following = chain_of_text(rendering(after), tokens_per_byte=0.25, block_bytes=16)
    assert grown.chain.blocks >= 4
    assert following.shared_blocks(grown.chain) == grown.chain.blocks


@pytest.mark.parametrize("block", [1, 16])
def test_chains_of_different_salts_share_nothing(block):
    mine, other = (chain_of_ids(range(64), block=block, salt=each) for each in ("a", "b"))
    assert mine.shared_blocks(other) == 0
    assert mine.shared_blocks(mine) == 64 // block
    if block > 1:
        assert not {*_cut(mine.elements, 8)} & {*_cut(other.elements, 8)}


@given(text=st.binary(max_size=500), more=st.binary(max_size=500), size=st.integers(1, 70))
def test_a_text_that_was_chained_once_is_chained_for_every_model(text, more, size):
    once = Chained.of_text(text, tokens_per_byte=1.0, block_bytes=size, salt="acme")
    anew = Chained.of_text(text, tokens_per_byte=0.3, block_bytes=size, salt="acme")
    assert once.at(0.3) == anew
    assert once.at(0.3).with_text(more) == anew.with_text(more)


def test_chains_that_were_made_in_different_ways_share_nothing():
    data = array("I", range(64)).tobytes()
    text = chain_of_text(data, tokens_per_byte=0.25, block_bytes=64)
    ids = chain_of_ids(range(64), block=16)
    assert text.elements == ids.elements
    assert text.shared_blocks(ids) == 0
    assert ids.shared_blocks(chain_of_ids(range(64), block=32)) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chain_of_ids([1], block=0), "block is 0, below 1"),
        (lambda: chain_of_ids([-1], block=2), "token ids are numbers from 0"),
        (lambda: chain_of_ids([1 << 32], block=2), "token ids are numbers from 0"),
        (lambda: chain_of_ids(["a"], block=2), "token ids are numbers from 0"),
        (lambda: chain_of_text(b"x", tokens_per_byte=0.0), r"tokens_per_byte is 0\.0"),
        (lambda: chain_of_text(b"x", tokens_per_byte=float("nan")), "tokens_per_byte is nan"),
        (lambda: chain_of_text(b"x", tokens_per_byte=1.0, block_bytes=0), "block_bytes is 0"),
        (lambda: Chained.of_ids([1], block=2).with_text(b"x"), "goes on with ids"),
        (lambda: Chained.of_text(b"x", tokens_per_byte=1.0).with_ids([1]), "goes on with text"),
        (lambda: Chained.of_ids([1], block=2).at(0.5), "as many as they are"),
    ],
)
def test_what_makes_no_chain_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
