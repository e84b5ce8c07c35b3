from copy import deepcopy

import pytest

from cascade.tiers.bound import stripped
from cascade.types import ChatRequest
from tests.engines import request, tier

MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TEXT = {"type": "text", "text": "hello"}
CALLS = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
THOUGHTS = [
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "reasoning", "encrypted_content": "x"},
]
EVERYTHING = frozenset({"cache_control", "prompt_cache", "thinking"})
NONE = frozenset()


def messages_of(*messages, accepts=NONE):
    return stripped(ChatRequest(id="r", messages=messages), accepts).messages


def marked():
    return ChatRequest(
        id="r",
        messages=[
            {"role": "system", "content": "brief", **MARK},
            {"role": "user", "content": [{**TEXT, **MARK}, {"type": "image_url", "image_url": {}}]},
            {
                "role": "assistant",
                "content": [*THOUGHTS, TEXT],
                "reasoning_content": "hm",
                "thinking_blocks": THOUGHTS[:1],
                "tool_calls": CALLS,
            },
            {"role": "tool", "content": [{"type": "tool_result", "content": [{**TEXT, **MARK}]}]},
        ],
        tools=[
            {"type": "function", "function": {"name": "f", **MARK}},
            {"type": "function", "function": {"name": "g"}, **MARK},
        ],
        params={
            "prompt_cache_key": "k",
            "prompt_cache_retention": "24h",
            "prompt_cache_options": {"mode": "explicit"},
            **MARK,
            "cache_salt": "mine",
            "reasoning_effort": "low",
        },
    )


def test_what_only_its_provider_understands_is_taken_out_and_nothing_else():
    assert stripped(marked(), NONE) == ChatRequest(
        id="r",
        messages=[
            {"role": "system", "content": "brief"},
            {"role": "user", "content": [TEXT, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": [TEXT], "tool_calls": CALLS},
            {"role": "tool", "content": [{"type": "tool_result", "content": [TEXT]}]},
        ],
        tools=[
            {"type": "function", "function": {"name": "f"}},
            {"type": "function", "function": {"name": "g"}},
        ],
        params={"cache_salt": "mine", "reasoning_effort": "low"},
    )


@pytest.mark.parametrize(
    ("accepted", "kept"),
    [
        ("cache_control", {"system": {"content", "role", "cache_control"}, "thoughts": 0}),
        ("prompt_cache", {"system": {"content", "role"}, "thoughts": 0}),
        ("thinking", {"system": {"content", "role"}, "thoughts": 3}),
    ],
)
def test_what_a_tier_accepts_it_gets(accepted, kept):
    left = stripped(marked(), frozenset({accepted}))
    assert left.messages[0].keys() == kept["system"]
    assert len(left.messages[2]["content"]) == kept["thoughts"] + 1
    assert ("reasoning_content" in left.messages[2]) == (accepted == "thinking")
    assert ("prompt_cache_key" in left.params) == (accepted == "prompt_cache")
    assert ("cache_control" in left.tools[1]) == (accepted == "cache_control")


def test_the_clients_own_request_is_not_changed():
    asked = marked()
    before = deepcopy(asked)
    stripped(asked, NONE)
    assert asked == before


@pytest.mark.parametrize("accepts", [NONE, EVERYTHING])
def test_a_request_with_nothing_to_take_out_is_the_same_object(accepts):
    asked = ChatRequest(
        id="r",
        messages=[
            {"role": "user", "content": [TEXT]},
            {"role": "assistant", "content": None, "tool_calls": CALLS},
            {"role": "tool", "content": []},
            {"role": "user"},
        ],
        tools=[{"type": "function", "function": {"name": "f"}}],
        params={"seed": 1},
    )
    assert stripped(asked, accepts) is asked


def test_a_tier_that_accepts_everything_gets_the_same_object():
    asked = marked()
    assert stripped(asked, EVERYTHING) is asked


def test_messages_without_such_content_are_not_copied():
    plain = {"role": "user", "content": [TEXT]}
    kept = messages_of(plain, {"role": "user", "content": "x", **MARK})
    assert kept[0] is plain


@pytest.mark.parametrize(("beside", "content"), [({}, ""), ({"tool_calls": CALLS}, None)])
def test_a_message_of_thoughts_alone_stays_a_valid_message(beside, content):
    [left] = messages_of({"role": "assistant", "content": THOUGHTS, **beside})
    assert left == {"role": "assistant", "content": content, **beside}


def test_what_a_user_wrote_is_never_taken_for_a_models_thoughts():
    mine = {"role": "user", "content": [{"type": "thinking"}], "reasoning": "because"}
    assert messages_of(mine)[0] is mine


@pytest.mark.parametrize("part", [{"type": ["thinking"]}, {"type": None}, {}, "text"])
def test_odd_parts_go_on_as_they_came(part):
    message = {"role": "assistant", "content": [part]}
    assert messages_of(message)[0] is message


async def test_a_tier_takes_it_out_for_its_own_model_only():
    asked = request(prompt_cache_key="k")
    plain = tier("plain", accepts=NONE)
    knowing = tier("knowing", accepts=frozenset({"prompt_cache"}))
    for each in (plain, knowing):
        assert [chunk async for chunk in each.stream(asked)]
    assert plain.backend.requests[0].params == {}
    assert knowing.backend.requests[0] is asked


SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}
SIGNED = {
    "id": "call_1__thought__c2lnbmVk",
    "type": "function",
    "function": {"name": "f", "arguments": "{}", "provider_specific_fields": SIGNATURE, **MARK},
    "extra_content": SIGNATURE,
    "provider_specific_fields": SIGNATURE,
    **MARK,
}
RESULT = {"role": "tool", "tool_call_id": "call_1__thought__c2lnbmVk", "content": "r"}
CALLING = {"role": "assistant", "content": None, "tool_calls": [SIGNED]}


def test_marks_and_signatures_of_tool_calls_are_taken_out():
    calling, result = messages_of({**CALLING, "provider_specific_fields": SIGNATURE}, RESULT)
    plain = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert calling == {"role": "assistant", "content": None, "tool_calls": [plain]}
    assert result == {**RESULT, "tool_call_id": "call_1"}


def test_a_tier_that_knows_thinking_gets_signatures_but_no_foreign_mark():
    calling, result = messages_of(CALLING, RESULT, accepts=frozenset({"thinking"}))
    [call] = calling["tool_calls"]
    assert call["id"] == SIGNED["id"]
    assert call["extra_content"] == call["provider_specific_fields"] == SIGNATURE
    assert "cache_control" not in call
    assert "cache_control" not in call["function"]
    assert result is RESULT


def test_a_tier_that_knows_marks_gets_no_foreign_signature():
    [calling, _] = messages_of(CALLING, RESULT, accepts=frozenset({"cache_control"}))
    [call] = calling["tool_calls"]
    assert call == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "f", "arguments": "{}", **MARK},
        **MARK,
    }


@pytest.mark.parametrize("calls", [None, "x", [], ["x"], [None], [{"id": 3, "function": "f"}]])
def test_odd_tool_calls_go_on_as_they_came(calls):
    message = {"role": "assistant", "content": "x", "tool_calls": calls}
    assert messages_of(message)[0] is message


def test_what_a_tool_is_called_is_left_alone():
    mine = {"role": "user", "content": "call_1__thought__x", "name": "a__thought__b"}
    assert messages_of(mine)[0] is mine
