"""A conversation in Anthropic's shape that goes on to Anthropic arrives as it was sent."""

import orjson

from cascade.backends.litellm_api import LitellmBackend
from serving.messages import response
from serving.messages.request import parse
from tests.anthropic import event
from tests.upstream import Upstream, serving

MARK = {"cache_control": {"type": "ephemeral"}}
PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
}
SIGNED = [
    {"type": "thinking", "thinking": "a b", "signature": "s1"},
    {"type": "redacted_thinking", "data": "d1"},
]
SAID = {"type": "text", "text": "look"}
USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": "b"}}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "c1",
    "content": [{"type": "text", "text": "3"}, PICTURE],
    **MARK,
}
BODY = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 2000,
    "system": [{"type": "text", "text": "brief", **MARK}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [
        {
            "type": "custom",
            "name": "f",
            "description": "d",
            "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            **MARK,
        }
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["X"],
    "metadata": {"user_id": "u"},
    "stream": True,
    "messages": [
        {"role": "user", "content": [PICTURE, {"type": "text", "text": "hi", **MARK}]},
        {"role": "assistant", "content": [*SIGNED, SAID, USE]},
        {"role": "user", "content": [RESULT, {"type": "text", "text": "so?"}]},
    ],
}


def block(index, start, *deltas):
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def answer():
    start = {"role": "assistant", "model": "claude-1", "content": [], "stop_reason": None}
    return [
        event("message_start", message={**start, "usage": {"input_tokens": 3, "output_tokens": 1}}),
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "a "},
            {"type": "thinking_delta", "thinking": "b"},
            {"type": "signature_delta", "signature": "s1"},
        ),
        *block(1, SIGNED[1]),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "look"}),
        *block(
            3,
            {**USE, "input": {}},
            {"type": "input_json_delta", "partial_json": '{"a":'},
            {"type": "input_json_delta", "partial_json": '"b"}'},
        ),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9}),
        event("message_stop"),
    ]


async def test_a_conversation_comes_through_litellm_as_it_was_and_so_does_its_answer():
    call = parse(orjson.dumps(BODY), {}, "r1")
    async with serving(Upstream(headers={"Content-Type": "text/event-stream"})) as upstream:
        upstream.pieces = answer()
        url = upstream.url.removesuffix("/v1")
        backend = LitellmBackend(model=f"anthropic/{BODY['model']}", url=url, api_key="k")
        chunks = [chunk async for chunk in backend.stream(call.request)]
        await backend.aclose()
    assert upstream.bodies == [BODY]
    [choice] = chunks[-1].completion.choices
    content = [*response.thoughts(choice.extra), choice.text, *response.tool_uses(choice)]
    assert content == [*SIGNED, "look", USE]
    assert response.stop_reason(choice) == "tool_use"
