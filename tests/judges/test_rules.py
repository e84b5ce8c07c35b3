import time

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion
from judges.rules import RulesJudge, TierRules

TOOL = {"type": "function", "function": {"name": "lookup"}}


def request(text="hello", **fields):
    return ChatRequest(id="r", messages=[{"role": "user", "content": text}], **fields)


async def judged(when, asked=None, **answer):
    judge = RulesJudge(reject=[{"when": when, "reason": "not ours to say"}])
    choice = Choice(**{"text": "fine", "finish_reason": "stop", **answer})
    return await judge.judge(asked or request(), Completion(choices=(choice,), tier="small"))


@pytest.mark.parametrize(
    ("when", "answer"),
    [
        ('answer.text.matches("(?i)refund")', {"text": "You get a REFUND."}),
        ("answer.length > 10", {"text": "x" * 11}),
        ('answer.finish_reason == "length"', {"finish_reason": "length"}),
        ('"lookup" in answer.tools', {"tool_calls": ({"function": {"name": "lookup"}},)}),
        ('request.ask.contains("hello") && answer.tier == "small"', {}),
    ],
)
async def test_an_answer_that_a_rule_rejects_is_final(when, answer):
    verdict = await judged(when, **answer)
    assert (verdict.score, verdict.final, verdict.reason) == (0.0, True, "not ours to say")


async def test_an_answer_that_none_rejects_is_only_not_rejected():
    verdict = await judged('answer.text.matches("(?i)refund")')
    assert (verdict.score, verdict.final) == (1.0, False)


async def test_a_rule_that_cannot_be_told_rejects():
    when = "has(request.params.n) && request.params.n > 1"
    verdict = await judged(when, request(params={"n": "many"}))
    assert (verdict.score, verdict.final) == (0.0, True)
    assert "cannot be told" in verdict.reason


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ("request.tenant ==", "cannot be read"),
        ("request.tennant == 'x'", "tennant"),
        ("answr.text == ''", "answr"),
        ("request.tags.team == 'x'", "has\\(request.tags"),
        ("size(request.tools)", "neither true nor false"),
        ("__import__('os').getpid() > 0", "has no value"),
    ],
)
def test_a_condition_that_cannot_work_is_refused_at_start(when, fault):
    with pytest.raises(ConfigError, match=fault) as caught:
        RulesJudge(reject=[{"when": when, "reason": "r"}])
    assert caught.value.param == "reject.0.when"


@pytest.mark.parametrize("rule", [{"when": "true"}, {"reason": "r"}, {"when": "true", "x": "y"}])
def test_a_rule_with_a_missing_or_an_unknown_key_is_refused(rule):
    with pytest.raises(ConfigError):
        RulesJudge(reject=[{"when": "true", "reason": "r"}, rule])


async def test_no_pattern_stalls():
    began = time.monotonic()
    await judged('answer.text.matches("^(a+)+$")', text="a" * 50_000 + "b")
    assert time.monotonic() - began < 1


def removed(rule, asked):
    return TierRules([{"reason": "so we say", **rule}], ["small", "large"]).removed(asked)


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ('request.tenant == "acme"', request(tenant="acme")),
        ('has(request.tags.pii) && request.tags.pii == "yes"', request(tags={"pii": "yes"})),
        ('"lookup" in request.tools', request(tools=[TOOL])),
        ('request.ask.matches("(?i)\\\\blawsuit\\\\b")', request("A Lawsuit?")),
        ("request.length > 100", request("x" * 101)),
        ("request.json", request(params={"response_format": {"type": "json_object"}})),
    ],
)
def test_a_request_that_a_rule_means_loses_tiers(when, asked):
    assert removed({"when": when, "remove": ["small"]}, asked) == {
        "small": "is ruled out: so we say"
    }
    assert removed({"when": when, "only": ["small"]}, asked) == {"large": "is ruled out: so we say"}
    assert removed({"when": when, "remove": ["small"]}, request()) == {}


def test_the_first_rule_that_removes_a_tier_gives_the_reason():
    rules = [{"when": "true", "reason": str(i), "remove": ["small"]} for i in range(2)]
    assert TierRules(rules, ["small"]).removed(request()) == {"small": "is ruled out: 0"}


@pytest.mark.parametrize(
    "rule", [{}, {"remove": ["small"], "only": ["small"]}, {"remove": ["huge"]}]
)
def test_a_rule_must_say_which_tiers(rule):
    with pytest.raises(ConfigError):
        removed({"when": "true", **rule}, request())
