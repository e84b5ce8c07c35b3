import time

import pytest

from cascade.tiers.requirements import at_most, needs, text_only
from cascade.types import ChatRequest
from tests.engines import request, tier

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
FUNCTION = {"type": "function", "function": {"name": "f"}}
EVERYTHING = ("logprobs", "json_schema", "tools", "vision", "reasoning")


def told(*messages, tools=None, **params):
    return ChatRequest(id="r", messages=messages, tools=tools, params=params)


def said(content, role="user"):
    return told({"role": role, "content": content})


def why(asked, **claims):
    return tier("t", **claims).unfit(needs(asked))


@pytest.mark.parametrize(
    ("asked", "capabilities"),
    [
        (request(), ()),
        (request(logprobs=True), ("logprobs",)),
        (request(logprobs=False, top_logprobs=None), ()),
        (request(response_format=SCHEMA), ("json_schema",)),
        (request(response_format={"type": "json_object"}), ()),
        (request(response_format=None), ()),
        (told(tools=[FUNCTION]), ("tools",)),
        (told(tools=[]), ()),
        (told(functions=[{"name": "f"}]), ("tools",)),
        (said([IMAGE]), ("vision",)),
        (said([{"type": "text", "text": "see"}, {"type": "input_image"}]), ("vision",)),
        (said([{"type": "file", "file": {"file_data": "data:image/png;base64,A"}}]), ("vision",)),
        (said([{"type": "input_file", "file_data": "data:image/png;base64,A"}]), ("vision",)),
        (said([{"type": "file", "file": {"file_data": "data:application/pdf;base64,A"}}]), ()),
        (said([{"type": "file", "file": {"file_id": "f-1"}}]), ()),
        (said([{"type": "tool_result", "content": [IMAGE]}]), ("vision",)),
        (told({"role": "tool", "content": [IMAGE]}, {"role": "user"}), ("vision",)),
        (said("image_url"), ()),
        (said([{"type": ["image_url"]}]), ()),
        (request(reasoning_effort="low"), ("reasoning",)),
        (request(reasoning_effort="none"), ()),
        (request(reasoning_effort=None), ()),
        (request(reasoning_effort=["low"]), ("reasoning",)),
        (request(thinking={"type": "enabled", "budget_tokens": 9}), ("reasoning",)),
        (request(thinking={"type": "adaptive"}), ("reasoning",)),
        (request(thinking={"type": "disabled"}), ()),
        (request(thinking={}), ()),
        (request(thinking="enabled"), ()),
        (request(output_config={"effort": "high"}), ("reasoning",)),
        (request(output_config={"format": {}}), ()),
        (request(reasoning={"effort": "low"}), ("reasoning",)),
        (request(reasoning={"effort": "none", "exclude": True}), ()),
        (request(reasoning={"max_tokens": 2000}), ("reasoning",)),
        (request(reasoning={"enabled": True}), ("reasoning",)),
        (request(reasoning={"enabled": False}), ()),
        (request(reasoning=None, output_config=None), ()),
        (request(verbosity="high"), ()),
    ],
)
def test_a_request_needs_what_it_asks_for(asked, capabilities):
    assert needs(asked).capabilities == capabilities


def everything():
    return told(
        {"role": "user", "content": [IMAGE]},
        tools=[FUNCTION],
        logprobs=True,
        response_format=SCHEMA,
        reasoning_effort="high",
    )


def test_a_stated_list_of_capabilities_is_complete_and_a_missing_one_claims_nothing():
    assert why(everything()) is None
    assert why(everything(), capabilities=frozenset(EVERYTHING)) is None
    assert why(everything(), capabilities=frozenset({"tools", "vision", "logprobs"})) == (
        "does not offer json_schema, reasoning"
    )
    assert why(request(), capabilities=frozenset()) is None


ENGLISH = "Every long chat that was called simple went to a model with too small a window. "
CODE = "    if each.tier in quotes:\n        return self._settle(calls, reason, rung.accept_at)\n"
CHINESE = "许多公司都在使用大型语言模型。首都是北京。"

# Tokens of the three texts, by tiktoken's o200k_base.
TRUE_COUNTS = [(ENGLISH, 17), (CODE, 23), (CHINESE, 14)]


@pytest.mark.parametrize(("text", "tokens"), TRUE_COUNTS)
def test_a_prompt_is_too_long_only_when_it_surely_is(text, tokens):
    asked = said(text * 100)
    assert why(asked, context_tokens=tokens * 100 + 1) is None
    assert "too short for the prompt" in why(asked, context_tokens=tokens * 100 // 4)


@pytest.mark.parametrize(
    "text",
    ["a" + " " * 2000, "a\n" * 90, "x" * 1600, "wort" * 100, "\u0d05" * 1600, "\U0001f600" * 1000],
    ids=["spaces", "lines", "one word", "long words", "letters", "emoji"],
)
def test_white_space_and_long_words_are_not_counted_by_the_character(text):
    assert why(said(text), context_tokens=101) is None


def test_all_text_counts_wherever_it_is_and_images_do_not():
    words = "a b c d e f g h i j"
    asked = told(
        {"role": "system", "content": words},
        {"role": "user", "content": [{"type": "text", "text": words}, IMAGE]},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": [{"type": "tool_result", "content": words}]},
    )
    assert why(asked, context_tokens=31) is None
    assert why(asked, context_tokens=30) == ("has a window of 30 tokens, too short for the prompt")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_generous_limit_on_the_answer_does_not_make_the_prompt_too_long(name):
    asked = request("a b c d e f g h i j", **{name: 32_000})
    assert why(asked, context_tokens=100) is None


def test_an_answer_longer_than_a_tier_gives_is_out_and_one_without_a_limit_is_not():
    assert why(request(max_tokens=4096), output_tokens=4096) is None
    assert why(request(max_tokens=4097), output_tokens=4096) == (
        "answers with at most 4096 tokens, not 4097"
    )
    assert why(request(max_tokens=None), output_tokens=1) is None


def test_counting_stops_at_the_window():
    needed = needs(said("a " * 5_000_000))
    began = time.process_time()
    assert tier("t", context_tokens=8192).unfit(needed)
    assert time.process_time() - began < 0.5


def test_the_high_estimate_counts_whatever_a_template_may_put_into_the_prompt():
    plain = at_most(said("hi"))
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "x" * 1000}}
    spoken = told({"role": "assistant", "content": None, "tool_calls": [call]})
    assert at_most(spoken) > plain + 1000
    assert at_most(told({"role": "user", "content": "hi"}, tools=[FUNCTION])) > plain
    assert at_most(said([{"type": "tool_result", "content": "y" * 1000}])) > plain + 1000
    assert at_most(said("\U0001f600" * 100)) > plain + 390
    assert at_most(said("\ud800" * 100)) > plain + 290


@pytest.mark.parametrize(("text", "tokens"), TRUE_COUNTS)
def test_the_high_estimate_is_above_the_low_one_and_the_truth(text, tokens):
    asked = said(text * 100)
    assert at_most(asked) > tokens * 100
    assert not needs(asked).prompt_exceeds(at_most(asked))


def test_media_are_left_out_of_estimates_and_of_what_is_counted():
    big = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}}
    text = {"type": "text", "text": "see"}
    asked = said([text, big, {"type": "file", "file": {"file_data": "A" * 10_000}}])
    assert at_most(asked) < 1000
    assert text_only(asked.messages) == [{"role": "user", "content": [text]}]
    assert text_only(said("x").messages) == list(said("x").messages)


def test_a_long_conversation_is_estimated_in_no_time():
    asked = told(*({"role": "user", "content": ENGLISH * 50} for _ in range(500)))
    began = time.process_time()
    assert at_most(asked) > 2_000_000
    assert time.process_time() - began < 0.5
