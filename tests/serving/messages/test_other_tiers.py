"""What a Messages conversation carries for its provider, on its way to a tier of another one."""

from dataclasses import replace

import anthropic
import pytest

from tests.messages import ASK

MARK = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "f", "input_schema": {"type": "object"}, **MARK}
TURNS = [
    {"role": "user", "content": [{"type": "text", "text": "2+2?", **MARK}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}, **MARK}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "4", **MARK}],
    },
]


def marked(value):
    """Whether there is a mark in it, however deep."""
    if isinstance(value, dict):
        return "cache_control" in value or any(map(marked, value.values()))
    return isinstance(value, list | tuple) and any(map(marked, value))


@pytest.mark.parametrize("accepts", [frozenset(), frozenset({"cache_control"})])
async def test_cache_marks_reach_only_a_tier_that_knows_them(connect, accepts):
    service, ai = await connect()
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], accepts=accepts)
    system = [{"type": "text", "text": "be brief", **MARK}]
    await ai.messages.create(
        model="small", max_tokens=9, messages=TURNS, system=system, tools=[TOOL]
    )
    [asked] = service.backend("small").requests
    parts = [*asked.messages, *asked.tools]
    assert [marked(part) for part in parts] == [bool(accepts)] * len(parts)


@pytest.mark.parametrize(
    ("asked", "reasons"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, True),
        ({"thinking": {"type": "adaptive"}}, True),
        ({"thinking": {"type": "disabled"}}, False),
        ({"output_config": {"effort": "high"}}, True),
    ],
)
async def test_thinking_and_effort_ask_for_a_tier_that_reasons(connect, asked, reasons):
    service, ai = await connect()
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], capabilities=frozenset({"logprobs"}))
    tiers["large"] = replace(tiers["large"], capabilities=frozenset({"reasoning"}))
    answer = await ai.messages.create(model="cascade", **ASK, **asked)
    assert answer.model == ("large-model" if reasons else "small-model")
    tier = "large" if reasons else "small"
    [got] = service.backend(tier).requests
    assert got.params.items() >= asked.items()
    if reasons:
        with pytest.raises(anthropic.BadRequestError, match="does not offer reasoning"):
            await ai.messages.create(model="small", **ASK, **asked)
