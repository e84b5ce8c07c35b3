"""Made-up requests: whatever comes, it is answered or refused, and its audit row can be written."""

import asyncio
import string
from dataclasses import asdict, replace

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.audit import record
from serving.messages.body import Body as MessagesBody
from serving.responses.body import Body as ResponsesBody
from serving.schemas import ChatBody
from tests.apis import APIS, app_of, ask
from tests.services import snapshot

PARTS = (
    *("text", "image_url", "image", "input_text", "input_image", "output_text", "refusal"),
    *("tool_use", "tool_result", "thinking", "redacted_thinking", "reasoning", "file"),
    *("function", "function_call", "function_call_output", "json_schema", "base64", "url"),
)
NAMES = (
    *("type", "text", "role", "content", "name", "id", "call_id", "input", "output", "arguments"),
    *("tool_calls", "tool_call_id", "tool_use_id", "function", "parameters", "input_schema"),
    *("image_url", "source", "url", "data", "media_type", "file", "file_data", "cache_control"),
    *("thinking", "signature", "thinking_blocks", "reasoning_content", "encrypted_content"),
    *("schema", "json_schema", "strict", "format", "effort", "is_error", "status", "summary"),
)
FIELDS = sorted({*ChatBody.model_fields, *MessagesBody.model_fields, *ResponsesBody.model_fields})
ROLES = ("user", "assistant", "system", "developer", "tool", "function")

words = st.sampled_from([*PARTS, *ROLES, "auto", "none", "required", "low", "", "{}", "a\x00b"])
plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    words,
    st.text(string.printable + "é漢\U0001f600", max_size=8),
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=8,
)
parts = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(PARTS),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
)
turns = st.builds(
    lambda role, content, rest: {**rest, "role": role, "content": content},
    st.sampled_from(ROLES),
    st.one_of(st.just("hi"), st.none(), st.lists(parts, max_size=3)),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=2),
)
controls = st.dictionaries(
    st.sampled_from(["session", "max_cost_usd", "min_quality", "deadline_ms", "pin", "explain"]),
    values | st.sampled_from([0.5, 1, "0.1", "large", True]),
    max_size=3,
)
limited = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def checked(api, body, headers=()):
    """Asks, in a loop of its own, a service whose tiers take less than everything."""
    shot = snapshot()
    shot.tiers["small"] = replace(
        shot.tiers["small"],
        accepts=frozenset(),
        capabilities=frozenset({"logprobs", "tools"}),
        context_tokens=100,
    )
    app, log = app_of(shot)

    async def one():
        async with asyncio.timeout(10):
            return await ask(app, api.path, body, headers)

    answer = asyncio.run(one())
    assert answer.status in {200, 400, 404, 504}, answer
    assert answer.headers["x-cascade-request-id"]
    for result in log.results:
        orjson.dumps(asdict(record(result)))
    return answer


@limited
@given(
    st.sampled_from(sorted(APIS)),
    st.lists(turns | parts, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=2),
    st.booleans(),
)
def test_a_made_up_conversation_is_answered_or_refused(api, said, fields, stream):
    one = APIS[api]
    body = one.body(stream=stream, **{one.turns: said})
    checked(one, {**body, **{name: v for name, v in fields.items() if name != one.turns}})


@limited
@given(st.sampled_from(sorted(APIS)), st.dictionaries(st.sampled_from(FIELDS), values, max_size=4))
def test_made_up_fields_are_answered_or_refused_by_name(api, fields):
    answer = checked(APIS[api], APIS[api].body(**fields))
    if answer.status == 400 and api != "messages":
        error = answer.json["error"]
        assert error["param"] or error["code"] == "no_tier_fits"


@limited
@given(st.sampled_from(sorted(APIS)), controls)
def test_made_up_control_is_followed_or_refused_by_name(api, control):
    answer = checked(APIS[api], APIS[api].body(cascade=control))
    if answer.status == 400:
        told = answer.json["error"]["message"]
        assert "cascade" in told or "budget" in told


@limited
@given(
    st.sampled_from(sorted(APIS)),
    st.sampled_from(["session", "max-cost-usd", "min-quality", "deadline-ms", "pin", "explain"]),
    st.binary(min_size=1, max_size=6) | st.sampled_from([b"1", b"0.5", b"true", b"small"]),
)
def test_a_made_up_header_is_followed_or_refused_by_name(api, name, value):
    answer = checked(APIS[api], APIS[api].body(), [(f"x-cascade-{name}".encode(), value)])
    if answer.status == 400:
        told = answer.json["error"]["message"]
        assert f"x-cascade-{name}" in told or "cascade.pin" in told or "budget" in told


@limited
@given(st.sampled_from(sorted(APIS)), st.binary(max_size=40))
def test_made_up_bytes_are_refused(api, raw):
    assert checked(APIS[api], raw).status == 400


@limited
@given(st.sampled_from(sorted(APIS)), st.data())
def test_a_damaged_body_is_answered_or_refused(api, data):
    body = bytearray(orjson.dumps(APIS[api].body(cascade={"explain": True})))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    checked(APIS[api], bytes(body))
