"""A fingerprint says what a prompt is made of, as hashes that tell nothing else."""

from dataclasses import replace

import pytest

from cascade.prefix import Fingerprints, fingerprint, rendering
from cascade.prefix.segments import MAX_PARTS
from tests import builders

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in "ab"]
SYSTEM = {"role": "system", "content": "You help."}
PACK = "<documents><document>One.</document>\n<document>Two.</document></documents>"


def said(role, content):
    return {"role": role, "content": content}


def told(*messages, **overrides):
    return builders.request(messages=messages, **overrides)


def segments(request, **options):
    found = fingerprint(request, tokens_per_byte=0.25, **options).segments
    return {each.name: each for each in found}


TURNS = [
    SYSTEM,
    said("user", f"{PACK}\nWhat is one?"),
    said("assistant", "One."),
    said("user", "And two?"),
]


def test_segments_come_in_the_order_in_which_a_model_reads_them():
    found = segments(told(*TURNS, tools=TOOLS))
    assert list(found) == ["tools", "system", "pack", "history", "suffix"]
    assert [len(each.parts) for each in found.values()] == [2, 1, 2, 2, 1]


def test_empty_segments_are_left_out():
    assert list(segments(told(said("user", "hi")))) == ["suffix"]
    assert list(segments(told(SYSTEM))) == ["system"]
    assert list(segments(told())) == []
    assert list(segments(told(*TURNS[:3]))) == ["system", "pack", "history"]


def test_results_of_tools_are_new_until_they_were_answered():
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "rain"}
    found = segments(told(SYSTEM, said("user", "hi"), call, result))
    assert [len(found[name].parts) for name in ("history", "suffix")] == [2, 1]


def test_developer_messages_are_the_system_prompt_and_later_ones_are_history():
    asked = told(said("developer", "a"), SYSTEM, said("user", "hi"), SYSTEM, said("assistant", "x"))
    found = segments(asked)
    assert len(found["system"].parts) == 2
    assert len(found["history"].parts) == 3


def test_tokens_are_those_of_the_rendering_and_the_stable_ones_come_first():
    rules = said("system", "You help. " * 200)
    asked = told(rules, *TURNS[1:], tools=TOOLS)
    found = fingerprint(asked, tokens_per_byte=0.5)
    all_tokens = sum(each.tokens for each in found.segments)
    assert all_tokens == pytest.approx(len(rendering(asked)) * 0.5, rel=0.03)
    stable = [each.tokens for each in found.segments[:3]]
    assert found.stable_tokens == sum(stable) < all_tokens


def test_a_message_has_the_same_hash_when_it_becomes_history():
    first = segments(told(*TURNS[:2]))
    second = segments(told(*TURNS))
    assert second["history"].parts[0] == first["suffix"].parts[0]
    assert [second[name].raw for name in ("system", "pack")] == [
        first[name].raw for name in ("system", "pack")
    ]


def test_of_many_messages_the_last_are_kept_with_how_many_are_missing():
    talk = [said("user" if at % 2 else "assistant", f"turn {at}") for at in range(MAX_PARTS + 44)]
    [history] = segments(told(said("user", "hi"), *talk[: MAX_PARTS - 1])).values()
    assert len(history.parts) == MAX_PARTS
    [longer] = segments(told(said("user", "hi"), *talk, said("assistant", "end"))).values()
    assert longer.parts[0] == "+46"
    assert len(longer.parts) == MAX_PARTS + 1
    assert longer.parts[1] == history.parts[46]


def test_documents_are_found_in_parts_of_contents_and_in_the_system_prompt():
    in_parts = [{"type": "text", "text": PACK}, {"type": "text", "text": "What?"}]
    packs = [
        segments(told(*messages))["pack"]
        for messages in (
            [SYSTEM, said("user", f"{PACK}\nWhat?")],
            [SYSTEM, said("user", in_parts)],
            [said("system", f"You help. {PACK}"), said("user", "What?")],
        )
    ]
    assert len({each.raw for each in packs}) == 1


@pytest.mark.parametrize(
    "text",
    ["<documents>never closed", "<documentsx>a</documents>", "</documents><documents ", "no tags"],
)
def test_what_is_not_marked_as_documents_is_text(text):
    assert list(segments(told(said("user", text)))) == ["suffix"]


@pytest.mark.parametrize(
    "piece",
    ["<documents>", "<documentsx", "<documents ", "</documents>", "<documents></documents>"],
)
def test_a_megabyte_of_marks_is_read_to_its_end(piece):
    text = piece * (1_000_000 // len(piece)) + "></documents>"
    assert segments(told(said("user", text)))["suffix"].tokens > 0


def test_the_hashes_of_two_tenants_and_of_two_keys_have_nothing_in_common():
    asked = told(*TURNS, tools=TOOLS)
    seen = [
        _hashes(segments(asked)),
        _hashes(segments(replace(asked, tenant="other"))),
        _hashes(segments(asked, key=b"k")),
        _hashes(segments(asked, key=b"l")),
    ]
    assert len(set.union(*seen)) == sum(map(len, seen))
    assert _hashes(segments(replace(asked, id="again"))) == seen[0]


def _hashes(found):
    parts = {part for each in found.values() for part in each.parts}
    masks = {one for each in found.values() for one in each.masked.values()}
    return parts | masks | {each.raw for each in found.values()}


def test_hashes_are_short_and_only_those_that_differ_are_kept():
    for each in segments(told(*TURNS, tools=TOOLS)).values():
        assert len(each.raw) == 16
        assert {len(part) for part in each.parts} == {8}
        assert each.raw not in each.masked.values()
    [plain] = segments(told(said("user", "hi"))).values()
    assert plain.masked == {}
    assert plain.under("dates") == plain.under("all") == plain.raw


def test_remembered_parts_give_the_same_and_only_so_many_are_remembered():
    small = Fingerprints(max_remembered=2)
    for _ in range(2):
        assert small.of(told(*TURNS, tools=TOOLS), tokens_per_byte=0.25) == fingerprint(
            told(*TURNS, tools=TOOLS), tokens_per_byte=0.25
        )
