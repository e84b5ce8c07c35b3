"""Tool calls of answers that stream live: released whole and valid, or not at all."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from cascade.answers import assemble
from cascade.backends.scripted import ScriptedBackend
from cascade.errors import BackendToolCallError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.protocols import Backend
from cascade.result import AttemptFinished, Delta
from cascade.tool_calls import ToolCallGate
from cascade.types import ChatRequest, Chunk, Completion, Outcome, Usage
from tests.engines import SMALL_THEN_LARGE, Bench, FixedJudge, request, tier

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {}}}
CLOCK = {"type": "function", "function": {"name": "clock"}}
SMALL_OR_LARGE = Arm(name=None, policy=FixedPolicy(name="f", tier="small", fallback=["large"]))


def said(text: str) -> dict[str, Any]:
    return {"index": 0, "delta": {"content": text}}


def call(arguments: str = "", *, number: int = 0, **head: Any) -> dict[str, Any]:
    """A piece of a tool call; with a name it is the first."""
    function = {"arguments": arguments, **head}
    piece = {"index": number, "function": function}
    if head:
        piece |= {"id": f"c{number}", "type": "function"}
    return {"index": 0, "delta": {"tool_calls": [piece]}}


def end(reason: str = "tool_calls") -> dict[str, Any]:
    return {"index": 0, "delta": {}, "finish_reason": reason}


WHOLE = [call(name="weather"), call('{"city":'), call(' "Oslo"}'), end()]


class Pieces(Backend):
    """A model that streams these pieces, one a chunk."""

    def __init__(self, *pieces: dict[str, Any]) -> None:
        self.pieces = pieces
        self.closed_after = 0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        for piece in self.pieces:
            self.closed_after += 1
            yield Chunk(choices=[piece], model="pieces")
        choices = assemble([piece] for piece in self.pieces)
        yield Chunk(
            completion=Completion(
                choices=choices, model="pieces", usage=Usage(input=10, cache_read=0, output=5)
            )
        )


def bench(*pieces: dict[str, Any]) -> Bench:
    small = replace(tier("small"), backend=Pieces(*pieces))
    return Bench(small, tier("large", "four"), arm=SMALL_OR_LARGE)


def asking(*tools: dict[str, Any]) -> ChatRequest:
    return replace(request(), tools=tools)


def released(events: list[Any]) -> list[dict[str, Any]]:
    return [piece for e in events if isinstance(e, Delta) for piece in e.choices]


async def test_a_call_goes_out_in_one_piece_before_the_end():
    events = await bench(*WHOLE).events(asking(WEATHER))
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    whole = {"index": 0, "id": "c0", "type": "function", "function": function}
    assert released(events) == [{"index": 0, "delta": {"tool_calls": [whole]}}, end()]
    result = events[-1].result
    assert result.completion.tool_calls[0]["function"] == function
    assert result.attempts[0].outcome is Outcome.ACCEPTED


async def test_text_goes_out_at_once_while_a_call_waits():
    gate = ToolCallGate([WEATHER])
    assert gate.through([said("Let me see")]) == ([said("Let me see")],)
    assert gate.through([call("{", name="weather")]) == []
    [[text]] = gate.through([said(" now")])
    assert text["delta"] == {"content": " now"}
    assert gate.through([call("}")]) == []
    kinds = [list(piece["delta"]) for [piece] in gate.through([end()])]
    assert kinds == [["tool_calls"], []]


def test_a_call_ends_where_the_next_begins():
    gate = ToolCallGate([WEATHER, CLOCK])
    gate.through([call("{}", name="weather")])
    [[first]] = gate.through([call(name="clock", number=1)])
    assert first["delta"]["tool_calls"][0]["function"]["name"] == "weather"
    gate.through([call("{}", number=1)])
    [[second], [last]] = gate.through([end()])
    assert second["delta"]["tool_calls"][0]["id"] == "c1"
    assert last["finish_reason"] == "tool_calls"


def test_a_call_in_a_stream_that_never_says_why_it_ended_goes_out_at_its_end():
    gate = ToolCallGate([WEATHER])
    assert gate.through([call("{}", name="weather")]) == []
    [[piece]] = gate.close()
    assert piece["delta"]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert gate.close() == []


def test_a_whole_answer_in_one_chunk_is_told_as_text_then_calls_then_its_end():
    gate = ToolCallGate([WEATHER])
    delta = {"content": "hm", **call("{}", name="weather")["delta"]}
    logprobs = {"content": [{"token": "hm", "logprob": -0.1}]}
    piece = {"index": 0, "delta": delta, "finish_reason": "tool_calls", "logprobs": logprobs}
    [[text], [asked], [last]] = gate.through([piece])
    assert (text["delta"], text["finish_reason"]) == ({"content": "hm"}, None)
    assert text["logprobs"] == logprobs
    assert asked["delta"]["tool_calls"][0]["function"]["name"] == "weather"
    assert (last["delta"], last["finish_reason"], last["logprobs"]) == ({}, "tool_calls", None)


def test_each_choice_has_calls_of_its_own():
    gate = ToolCallGate([WEATHER])
    gate.through([call("{}", name="weather"), {**call("{}", name="weather"), "index": 1}])
    ended = gate.through([{**end(), "index": 1}])
    assert [piece["index"] for [piece] in ended] == [1, 1]
    assert [piece["index"] for [piece] in gate.through([end()])] == [0, 0]


@pytest.mark.parametrize(
    ("pieces", "fault"),
    [
        ([call('{"city": "Os', name="weather"), end("length")], "not JSON"),
        ([call("{'city': 1}", name="weather"), end()], "not JSON"),
        ([call("[" * 100_000, name="weather"), end()], "not JSON"),
        ([call("{}", name="wether"), end()], "'wether'; the request has weather"),
        ([call("{}"), end()], "a tool None"),
        ([call("{}", name=""), end()], "a tool ''"),
        ([call("{", name="weather"), call("{}", name="weather", number=1), end()], "not JSON"),
    ],
)
async def test_a_call_that_cannot_be_made_hands_over_to_the_next_tier(pieces, fault):
    events = await bench(*pieces).events(asking(WEATHER))
    result = events[-1].result
    assert result.completion.text == "four"
    assert {e.tier for e in events if isinstance(e, Delta)} == {"large"}
    first = result.attempts[0]
    assert (first.outcome, first.error.code) == (Outcome.INVALID, "invalid_tool_call")
    assert fault in first.error.message
    [failed] = [e.attempt for e in events if isinstance(e, AttemptFinished)][:1]
    assert failed == first


async def test_a_call_that_cannot_be_made_breaks_a_stream_whose_text_went_out():
    events = await bench(said("Let me see"), call("{", name="weather"), end()).events(
        asking(WEATHER)
    )
    result = events[-1].result
    assert [piece["delta"] for piece in released(events)] == [{"content": "Let me see"}]
    assert (result.error.type, result.error.status) == ("StreamBrokenError", 502)
    assert result.attempts[0].outcome is Outcome.INVALID
    assert result.completion is None


async def test_a_piece_of_a_call_that_went_out_already_breaks_the_stream():
    late = [call("{}", name="weather"), call("{}", name="weather", number=1), call("x"), end()]
    result = await bench(*late).live(asking(WEATHER))
    assert result.error.type == "StreamBrokenError"


async def test_a_whole_answer_with_an_invalid_call_leaves_it_to_the_next_tier():
    late = [said("Let me see"), call("{}", name="weather"), call("x", number=1), end()]
    result = await bench(*late).run(asking(WEATHER))
    assert result.completion.tier == "large"
    assert result.attempts[0].outcome is Outcome.INVALID


async def test_the_upstream_is_left_as_soon_as_a_call_is_known_to_be_invalid():
    second = call("{}", name="weather", number=1)
    bad = bench(call("{", name="weather"), second, second, second, end())
    result = await bad.run(asking(WEATHER))
    small = bad.engine.snapshot.tiers["small"].backend
    assert small.closed_after == 2
    assert result.attempts[0].usage_estimated


async def test_an_invalid_call_is_paid_for_as_reported_if_the_report_was_in():
    result = await bench(call("{", name="weather")).run(asking(WEATHER))
    first = result.attempts[0]
    assert first.outcome is Outcome.INVALID
    assert (first.completion.usage.output, first.usage_estimated) == (5, False)
    assert first.cost.total == Decimal("0.00002")
    assert result.cost.total == sum(a.cost.total for a in result.attempts)


@pytest.mark.parametrize("tools", [None, [], [{"type": "web_search"}]])
def test_without_a_tool_that_has_a_name_a_call_of_any_goes_out(tools):
    gate = ToolCallGate(tools)
    gate.through([call("{}", name="anything")])
    assert len(gate.through([end()])) == 2


def test_a_call_without_arguments_is_whole():
    gate = ToolCallGate([CLOCK])
    gate.through([call("", name="clock")])
    assert len(gate.through([end()])) == 2


def test_a_custom_tool_takes_any_text():
    gate = ToolCallGate([{"type": "custom", "custom": {"name": "sql"}}])
    piece = {"index": 0, "type": "custom", "id": "c", "custom": {"name": "sql", "input": "select"}}
    gate.through([{"index": 0, "delta": {"tool_calls": [piece]}}])
    [[asked], _] = gate.through([end()])
    assert asked["delta"]["tool_calls"][0]["custom"]["input"] == "select"


def test_arguments_that_are_no_text_are_refused():
    gate = ToolCallGate([CLOCK])
    piece = {"index": 0, "function": {"name": "clock", "arguments": {"a": 1}}}
    gate.through([{"index": 0, "delta": {"tool_calls": [piece]}}])
    with pytest.raises(BackendToolCallError, match="not JSON"):
        gate.through([end()])


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", '"text"'])
async def test_a_judge_is_not_asked_about_a_call_that_cannot_be_made(arguments):
    judge = FixedJudge(0.9)
    small = replace(tier("small"), backend=Pieces(call(arguments, name="weather"), end()))
    judged = Bench(small, tier("large"), judge=judge, arm=SMALL_THEN_LARGE)
    result = await judged.live(asking(WEATHER))
    assert not judge.seen
    assert result.attempts[0].outcome is Outcome.INVALID
    assert result.completion.tier == "large"


async def test_the_official_client_reads_what_goes_out():
    pieces = [
        said("Let me see"),
        call(name="weather"),
        call('{"city": "Oslo"}'),
        call("{}", name="clock", number=1),
        end(),
    ]
    state = ChatCompletionStreamState()
    for piece in released(await bench(*pieces).events(asking(WEATHER, CLOCK))):
        chunk = {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"finish_reason": None, **piece}],
        }
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    message = state.get_final_completion().choices[0].message
    assert message.content == "Let me see"
    calls = [(c.function.name, c.function.arguments) for c in message.tool_calls]
    assert calls == [("weather", '{"city": "Oslo"}'), ("clock", "{}")]


async def test_a_scripted_model_with_calls_still_answers():
    asked = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    small = replace(
        tier("small"), backend=ScriptedBackend(answers=[{"text": "", "tool_calls": [asked]}])
    )
    result = await Bench(small, tier("large"), arm=SMALL_OR_LARGE).run(asking(WEATHER))
    assert result.completion.tool_calls == (asked,)


@given(
    calls=st.lists(
        st.tuples(
            st.sampled_from(["weather", "clock"]),
            st.dictionaries(st.text(max_size=3), st.integers(), max_size=3).map(json.dumps),
        ),
        min_size=1,
        max_size=3,
    ),
    texts=st.lists(st.text(min_size=1, max_size=5), max_size=4),
    data=st.data(),
)
def test_however_it_is_cut_into_pieces_the_answer_stays_the_same(calls, texts, data):
    pieces = [said(text) for text in texts]
    for number, (name, arguments) in enumerate(calls):
        at = data.draw(st.integers(0, len(arguments)))
        pieces.append(call(arguments[:at], name=name, number=number))
        if data.draw(st.booleans()):
            pieces.append(said("..."))
        pieces.append(call(arguments[at:], number=number))
    pieces.append(end())
    gate = ToolCallGate([WEATHER, CLOCK])
    out = [choices for piece in pieces for choices in gate.through([piece])]
    assert assemble(out) == assemble([piece] for piece in pieces)
    assert gate.close() == []
