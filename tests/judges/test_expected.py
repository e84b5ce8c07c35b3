import time

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion
from judges.expected import ExpectedJudge, last_number


async def judged(text, tags=None, **options):
    request = ChatRequest(id="r", messages=[], tags=tags or {})
    judge = ExpectedJudge(**options)
    return await judge.judge(request, Completion(choices=(Choice(text=text),)))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("order 1234-AB", {"pattern": r"\d{4}-[A-Z]{2}$"}),
        (" Positive.", {"one_of": ["positive", "negative"]}),
        ("about 12 apples", {"number": True}),
        ("42.04", {"reference_tag": "right", "tolerance": 0.05}),
        ("so 1,042 - 1,000 = 42", {"reference_tag": "right"}),
    ],
)
async def test_what_is_as_expected_passes_and_is_not_final(text, options):
    verdict = await judged(text, {"right": "42"}, **options)
    assert (verdict.score, verdict.final) == (1.0, False)


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("order 12", {"pattern": r"^\d{4}"}, "pattern"),
        ("it is positive", {"one_of": ["positive", "negative"]}, "none of those"),
        ("a dozen", {"number": True}, "no number"),
        ("42.06", {"reference_tag": "right", "tolerance": 0.05}, "42.06"),
        ("-42", {"reference_tag": "right"}, "-42"),
        ("none", {"reference_tag": "right"}, "None"),
    ],
)
async def test_what_is_not_is_final_and_named(text, options, fault):
    verdict = await judged(text, {"right": "42"}, **options)
    assert (verdict.score, verdict.final) == (0.0, True)
    assert fault in verdict.reason


async def test_a_reference_in_words_is_compared_in_words():
    assert (await judged("Route 66.", {"r": "route 66"}, reference_tag="r")).score == 1.0
    assert (await judged("Road 66", {"r": "route 66"}, reference_tag="r")).score == 0.0


async def test_a_request_without_the_tag_is_not_compared():
    verdict = await judged("7", reference_tag="right")
    assert (verdict.score, verdict.features) == (1.0, {"compared": 0.0})


async def test_no_pattern_stalls():
    began = time.monotonic()
    assert (await judged("a" * 50_000 + "b", pattern="^(a+)+$")).score == 0.0
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    "options", [{}, {"pattern": "("}, {"pattern": "(?=x)"}, {"number": True, "tolerance": -1}]
)
def test_what_cannot_be_held_against_anything_is_refused(options):
    with pytest.raises(ConfigError):
        ExpectedJudge(**options)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,234.5", 1234.5), ("\u22125", -5.0), ("3e2", 300.0), ("v1.2", None), ("", None)],
)
def test_the_last_number_is_read_as_people_write_it(text, number):
    assert last_number(text) == number
