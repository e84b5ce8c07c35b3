"""A prompt that is cut in pieces, most of them remembered, has the tokens of one that is not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.backends.pieces import Pieces, Special, special_of

START = "<|start|>"
TURN = Special(START, 7)
CHAT = f"Rules.{START}user\nhi{START}assistant\nyes{START}user\nso?"


class Server:
    """Cuts words and marks, and remembers what it was asked."""

    def __init__(self, *, strips=False, ends=()):
        self.asked = []
        self.answers = True
        self._strips = strips
        self._ends = ends

    def ids(self, text, *, special=True):
        if self._strips and special:
            text = re.sub(rf"\s+{re.escape(START)}", START, text)
        found = re.findall(rf"{re.escape(START)}|\w+|\s+|." if special else r"\w+|\s+|.", text)
        return [7 if each == START else 100 + hash(each) % 10_000 for each in found]

    def all_ids(self, prompt):
        return [1, *self.ids(prompt), *self._ends]

    async def whole(self, text):
        self.asked.append(text)
        return self.all_ids(text) if self.answers else None

    async def inner(self, text):
        self.asked.append(text)
        return self.ids(text) if self.answers else None

    async def plain(self, text):
        return self.ids(text, special=False)

    async def cut(self, pieces, prompt, tenant="t"):
        ids = await pieces.ids(prompt, tenant, whole=self.whole, inner=self.inner)
        return None if ids is None else list(ids)


@pytest.fixture
def server():
    return Server()


async def test_only_what_is_new_is_cut(server):
    pieces = Pieces(TURN)
    second, third = f"{CHAT}{START}assistant\nno", f"{CHAT}{START}assistant\nno{START}user\nwhy"
    for prompt in (CHAT, second, third):
        assert await server.cut(pieces, prompt) == server.all_ids(prompt)
    new = [f"{START}user\nso?{START}assistant\nno", f"{START}assistant\nno{START}user\nwhy"]
    once = second
    assert server.asked == [CHAT, new[0], once, new[1]], "the first time it is made sure of"


async def test_what_changed_in_the_middle_is_cut_again(server):
    pieces = Pieces(TURN)
    await server.cut(pieces, CHAT)
    await server.cut(pieces, CHAT)
    server.asked.clear()
    changed = CHAT.replace("Rules", "Laws").replace("yes", "maybe")
    assert await server.cut(pieces, changed) == server.all_ids(changed)
    assert server.asked == [f"Laws.{START}assistant\nmaybe{START}user\nso?"]


@given(
    st.booleans(),
    st.lists(st.lists(st.sampled_from(["a", "b ", " c", "d1", "", START]), max_size=6)),
)
async def test_whatever_came_before_the_tokens_are_those_of_the_whole(strips, chats):
    server, pieces = Server(strips=strips), Pieces(TURN, max_tokens=3 * 64 + 12)
    for chat in chats:
        prompt = "".join(chat)
        assert await server.cut(pieces, prompt) == server.all_ids(prompt)


async def test_a_tokenizer_that_ends_a_prompt_with_a_token_is_found_out():
    server, pieces = Server(ends=[2]), Pieces(TURN)
    prompts = [f"a{START}b", f"a{START}c", f"a{START}d"]
    for prompt in prompts:
        assert await server.cut(pieces, prompt) == server.all_ids(prompt)
    assert server.asked == [prompts[0], f"{START}c", *prompts[1:]], "cut as a whole from then on"


async def test_one_tenants_pieces_are_not_anothers(server):
    pieces = Pieces(TURN)
    await server.cut(pieces, CHAT)
    await server.cut(pieces, CHAT, tenant="other")
    assert server.asked == [CHAT, CHAT]


async def test_no_more_tokens_are_remembered_than_were_allowed(server):
    pieces = Pieces(TURN, max_tokens=640)
    long = START.join(f"word{at} " for at in range(50))
    for prompt in (CHAT, long, CHAT):
        assert await server.cut(pieces, prompt) == server.all_ids(prompt)
    assert server.asked[-1] == CHAT


async def test_a_server_that_does_not_answer_leaves_the_tokens_unknown_and_nothing_remembered(
    server,
):
    pieces = Pieces(TURN)
    server.answers = False
    assert await server.cut(pieces, CHAT) is None
    server.answers = True
    assert await server.cut(pieces, CHAT) == server.all_ids(CHAT)


async def test_the_special_token_is_the_one_that_a_template_writes_most_often(server):
    prompt = f"<b><b><b><b>{CHAT}"
    assert await special_of(prompt, special=server.inner, plain=server.plain) == TURN


@pytest.mark.parametrize("prompt", ["", "User: hi", f"once {START}", "<b>a<b>"])
async def test_a_template_without_one_has_none(server, prompt):
    assert await special_of(prompt, special=server.inner, plain=server.plain) is None
