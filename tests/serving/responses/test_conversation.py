"""Items become messages."""

import base64

import orjson
import pytest

from serving.responses.conversation import messages
from serving.responses.sealed import seal, unseal

USER = {"role": "user", "content": "hi"}
SIGNED = [{"type": "thinking", "thinking": "hm", "signature": "s1"}]


def said(text):
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    bookkeeping = {"id": "msg_1", "status": "completed", "phase": "commentary"}
    return {"type": "message", "role": "assistant", "content": [part], **bookkeeping}


def call(identity):
    return {"type": "function_call", "call_id": identity, "name": "f", "arguments": "{}"}


def called(identity):
    function = {"name": "f", "arguments": "{}"}
    return {"id": identity, "type": "function", "function": function}


def thought(text="", sealed=None):
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "in short"}],
        "content": content,
        "encrypted_content": sealed,
    }


def output(identity, value="1"):
    return {"type": "function_call_output", "call_id": identity, "output": value}


def test_the_items_of_one_turn_are_one_message():
    given = [USER, thought("hm"), said("a"), call("c1"), call("c2"), output("c1"), output("c2")]
    assert messages(given) == [
        USER,
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [called("c1"), called("c2")],
            "reasoning_content": "hm",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "tool", "tool_call_id": "c2", "content": "1"},
    ]


def test_a_call_without_text_has_null_content():
    assert messages([call("c1")]) == [
        {"role": "assistant", "content": None, "tool_calls": [called("c1")]}
    ]


def test_what_is_said_between_a_call_and_its_result_stays_in_the_calls_message():
    [turn, result] = messages([said("a"), call("c1"), thought("hm"), said("b"), output("c1")])
    assert turn["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (turn["tool_calls"], turn["reasoning_content"]) == ([called("c1")], "hm")
    assert result["role"] == "tool"


def test_two_answers_in_a_row_stay_two():
    assert [m["content"] for m in messages([said("a"), said("b")])] == ["a", "b"]
    [first, second] = messages([thought("x"), said("a"), thought("y"), said("b")])
    assert (first["reasoning_content"], second["reasoning_content"]) == ("x", "y")


def test_calls_of_different_turns_stay_apart():
    given = [call("c1"), output("c1"), call("c2"), output("c2")]
    assert [m["role"] for m in messages(given)] == ["assistant", "tool", "assistant", "tool"]


def test_thoughts_that_led_to_nothing_are_left_out():
    assert messages([USER, thought("hm"), USER]) == [USER, USER]


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_a_message_keeps_its_role_and_what_cascade_does_not_know(role):
    mark = {"cache_control": {"type": "ephemeral"}}
    text = {"type": "input_text", "text": "a", **mark}
    given = {"type": "message", "id": "msg_1", "role": role, "content": [text], "name": "n"}
    [message] = messages([given])
    assert message == {
        "role": role,
        "name": "n",
        "content": [{"type": "text", "text": "a", **mark}],
    }


@pytest.mark.parametrize("empty", ["", []])
def test_a_function_that_gave_nothing_has_an_empty_result(empty):
    assert messages([call("c1"), output("c1", empty)])[1]["content"] == ""


def test_a_function_may_show_an_image():
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    [_, result] = messages([call("c1"), output("c1", [picture])])
    assert result["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    ]


def test_signed_thoughts_go_back_as_they_were_and_their_text_does_not():
    [message] = messages([thought("hm", seal(SIGNED)), said("a")])
    assert message == {"role": "assistant", "content": "a", "thinking_blocks": SIGNED}


def test_what_another_service_encrypted_and_its_summary_are_left_out():
    assert messages([thought(sealed="gAAAAAB"), said("a")]) == [
        {"role": "assistant", "content": "a"}
    ]


def packed(value):
    return "cascade1." + base64.urlsafe_b64encode(orjson.dumps(value)).decode()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "gAAAAAB",
        "cascade1.",
        "cascade1.%%%",
        "cascade1.\u00e9",
        packed(SIGNED).removeprefix("cascade1."),
        packed(5),
        packed([5]),
        packed([{"type": "thinking", "thinking": {"a": 1}}]),
        "cascade1." + base64.urlsafe_b64encode(b"[" * 2000).decode(),
    ],
)
def test_what_was_not_sealed_here_is_no_thought(text):
    assert unseal(text) == []


def test_only_signed_or_redacted_thoughts_are_sealed():
    plain = {"type": "thinking", "thinking": "hm", "signature": ""}
    hidden = {"type": "redacted_thinking", "data": "d"}
    assert seal([plain]) is None
    assert unseal(seal([plain, *SIGNED, hidden])) == [*SIGNED, hidden]
