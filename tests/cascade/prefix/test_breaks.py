"""Whatever silently breaks a prefix is seen: in which segment, and what has to be left out for it.

Each case is a request and one that was meant to find it warm.
"""

import base64
import random
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.prefix import chain_of_text, fingerprint, rendering
from tests import builders

MARK = {"cache_control": {"type": "ephemeral"}}
PROPERTIES = {"place": {"type": "string"}, "days": {"type": "integer"}}


def tool(name, properties=PROPERTIES):
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def system(text):
    return {"role": "system", "content": text}


def user(content):
    return {"role": "user", "content": content}


def answer(content):
    return {"role": "assistant", "content": content}


def image(data):
    address = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": address}}


def pack(*documents):
    found = "".join(f"<document>{each}</document>" for each in documents)
    return user(f"<documents>{found}</documents>\nWho wrote this?")


HELP = "You help with the weather. " * 10
TALK = [user("Hello, how are you?" * 9), answer("Well." * 9), user("Oslo?"), answer("It rains.")]
NOW = user("And tomorrow, in the afternoon?")
TOOLS = [tool("now"), tool("tomorrow"), tool("next_week")]


def asked(*messages, tools=TOOLS, **overrides):
    return builders.request(messages=messages, tools=tools, **overrides)


def changed(one, other):
    """Segments that differ, with the masks under which they do not."""
    mine, its = (
        {each.name: each for each in fingerprint(request, tokens_per_byte=0.25).segments}
        for request in (one, other)
    )
    return {
        name: {
            mask
            for mask in ("dates", "ids", "order", "all")
            if name in mine and name in its and mine[name].under(mask) == its[name].under(mask)
        }
        for name in mine | its
        if name not in mine or name not in its or mine[name].raw != its[name].raw
    }


def shared(one, other):
    """The share of a prompt that both begin with."""
    mine, its = (
        chain_of_text(rendering(each), tokens_per_byte=0.25, block_bytes=16, salt=each.tenant)
        for each in (one, other)
    )
    return mine.shared_blocks(its) / mine.blocks


def prompted(text, **overrides):
    return asked(system(f"{text} {HELP}"), *TALK, NOW, **overrides)


PLAIN = prompted("Be brief.")
CASES = {
    "a timestamp in the system prompt": (
        prompted("It is Monday, 30 November 2026, 7:41 PM."),
        prompted("It is Tuesday, 1 December 2026, 10:02 AM."),
        {"system": {"dates", "all"}},
    ),
    "a timestamp in Korean": (
        prompted("지금은 2026년 11월 30일 오후 7시 41분입니다."),
        prompted("지금은 2026년 12월 1일 오전 10시 2분입니다."),
        {"system": {"dates", "all"}},
    ),
    "an id in the system prompt": (
        prompted(f"Session {uuid.UUID(int=7)}."),
        prompted(f"Session {uuid.UUID(int=2**127 + 5)}."),
        {"system": {"ids", "all"}},
    ),
    "a date and an id": (
        prompted(f"Session {uuid.UUID(int=7)}, begun at 2026-11-30T07:41:00Z."),
        prompted(f"Session {uuid.UUID(int=8)}, begun at 2026-12-01T19:02:10Z."),
        {"system": {"all"}},
    ),
    "the order of the tools": (
        PLAIN,
        prompted("Be brief.", tools=[TOOLS[2], TOOLS[0], TOOLS[1]]),
        {"tools": {"order", "all"}},
    ),
    "the order of a tool's keys": (
        PLAIN,
        prompted(
            "Be brief.",
            tools=[tool("now", dict(reversed(PROPERTIES.items()))), *TOOLS[1:]],
        ),
        {"tools": {"order", "all"}},
    ),
    "tools left out": (PLAIN, prompted("Be brief.", tools=TOOLS[:2]), {"tools": set()}),
    "all tools left out": (PLAIN, prompted("Be brief.", tools=None), {"tools": set()}),
    "the order of the retrieved documents": (
        asked(system(HELP), pack("Ibsen wrote plays.", "Munch painted.")),
        asked(system(HELP), pack("Munch painted.", "Ibsen wrote plays.")),
        {"pack": {"order", "all"}},
    ),
    "other documents": (
        asked(system(HELP), pack("Ibsen wrote plays.", "Munch painted.")),
        asked(system(HELP), pack("Ibsen wrote plays.", "Grieg composed.")),
        {"pack": set()},
    ),
    "the order of documents in a later turn": (
        asked(system(HELP), *TALK, pack("Ibsen wrote plays.", "Munch painted.")),
        asked(system(HELP), *TALK, pack("Munch painted.", "Ibsen wrote plays.")),
        {"suffix": {"order", "all"}},
    ),
    "a history that was cut": (
        asked(system(HELP), *TALK, NOW),
        asked(system(HELP), *TALK[2:], NOW),
        {"history": set()},
    ),
    "a history that became a summary": (
        asked(system(HELP), *TALK, NOW),
        asked(system(HELP), answer("So far: rain in Oslo."), NOW),
        {"history": set()},
    ),
    "an image that was encoded anew": (
        asked(user([image(b"\x89PNG 1"), {"type": "text", "text": "What?"}]), answer("Rain"), NOW),
        asked(user([image(b"\x89PNG 2"), {"type": "text", "text": "What?"}]), answer("Rain"), NOW),
        {"history": set()},
    ),
    "white space": (PLAIN, prompted("Be  brief."), {"system": set()}),
    "what is asked": (
        asked(system(HELP), *TALK, NOW),
        asked(system(HELP), *TALK, user("And today, in the evening, then?")),
        {"suffix": set()},
    ),
}


@pytest.mark.parametrize(("one", "other", "seen"), CASES.values(), ids=CASES)
def test_what_broke_a_prefix_is_seen_where_it_is(one, other, seen):
    assert changed(one, other) == seen
    assert shared(one, other) < 1.0


def test_the_sooner_the_change_comes_the_less_is_shared():
    order = [CASES[name] for name in ("all tools left out", "white space", "what is asked")]
    shares = [shared(one, other) for one, other, _ in order]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] > 0.9


def test_a_cut_history_is_known_by_its_messages():
    one, other, _ = CASES["a history that was cut"]
    mine, its = (_segment(request, "history") for request in (one, other))
    assert (len(mine.parts), len(its.parts)) == (4, 2)
    assert mine.parts[2:] == its.parts


def _segment(request, name):
    found = fingerprint(request, tokens_per_byte=0.25).segments
    return next(each for each in found if each.name == name)


@pytest.mark.parametrize(
    "other",
    [
        prompted("Be brief.", tools=[{**TOOLS[0], **MARK}, *TOOLS[1:]]),
        asked(
            {"role": "system", "content": [{"type": "text", "text": f"Be brief. {HELP}", **MARK}]},
            *TALK,
            NOW,
        ),
        asked(system(f"Be brief. {HELP}"), *TALK[:-1], {**TALK[-1], **MARK}, NOW),
        prompted("Be brief.", params={"temperature": 0.1, "seed": 7}),
        prompted("Be brief.", session="s-2", unit="u", tags={}),
    ],
    ids=["a mark on a tool", "a mark on the system prompt", "a mark moved", "params", "session"],
)
def test_what_breaks_no_prefix_changes_nothing(other):
    assert changed(PLAIN, other) == {}
    assert shared(PLAIN, other) == 1.0


def test_another_tenant_shares_nothing_and_no_segment_looks_alike():
    other = replace(PLAIN, tenant="other")
    assert shared(PLAIN, other) == 0.0
    names = ("tools", "system", "history", "suffix")
    assert changed(PLAIN, other) == {name: set() for name in names}


@given(st.permutations(range(len(TOOLS))), st.randoms(use_true_random=False))
def test_any_order_of_tools_and_of_their_keys_is_the_same_under_order(order, shuffled):
    tools = [_shuffled(TOOLS[at], shuffled) for at in order]
    assert "order" in changed(PLAIN, prompted("Be brief.", tools=tools)).get("tools", {"order"})


def _shuffled(value, rng: random.Random):
    if not isinstance(value, dict):
        return value
    keys = list(value)
    rng.shuffle(keys)
    return {key: _shuffled(value[key], rng) for key in keys}
