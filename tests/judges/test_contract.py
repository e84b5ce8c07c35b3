"""What every judge in the registry must do; a new line there brings these tests with it."""

import asyncio
import copy
from inspect import signature

import pytest

from cascade.errors import ConfigError, JudgeError
from cascade.registry import load
from cascade.types import FREE, ChatRequest, Choice, Completion
from judges.format import FormatJudge
from judges.logprob import LogprobJudge
from judges.registry import JUDGES
from tests.engines import FixedJudge, tier

TOOL = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "required": ["a"]}},
}


def tiers(*answers):
    return {name: tier(name, *(answers or ("yes",))) for name in ("small", "large")}


def options(kind, *answers):
    """A set of options under which a judge of the kind does all that it can."""
    return {
        "agreement": {"tiers": tiers(*answers), "of": FixedJudge(0.5)},
        "code": {"allow_execution": True, "isolation": "best"},
        "expected": {"pattern": "^[a-z]", "reference_tag": "reference"},
        "llm": {"tiers": tiers(*answers), "tier": "large", "rubric": "correct"},
        "panel": {"members": [FormatJudge(), LogprobJudge()]},
        "rules": {"reject": [{"when": "answer.text == 'odd'", "reason": "odd"}]},
    }.get(kind, {})


CALLERS = ("agreement", "llm")
"""Judges that call a model."""


def entry(logprob, token="x"):
    top = [{"token": token, "logprob": logprob}, {"token": "y", "logprob": -3.0}]
    return {"token": token, "bytes": list(token.encode()), "logprob": logprob, "top_logprobs": top}


ASK = [{"role": "user", "content": "Write f.\n>>> f(1)\n2\n"}]
REQUESTS = [
    ChatRequest(id="1", messages=[{"role": "user", "content": "hi"}], tags={"reference": "fine"}),
    ChatRequest(id="2", messages=[], params={"max_tokens": 1, "tool_choice": "required"}),
    ChatRequest(id="3", messages=[], params={"response_format": {"type": "json_object"}}),
    ChatRequest(id="4", messages=ASK, tools=[TOOL]),
]
ANSWERS = [
    Choice(text="fine", finish_reason="stop", logprobs=[entry(-0.1), entry(-0.4)]),
    Choice(text="", finish_reason="stop", logprobs=[]),
    Choice(text="cut of", finish_reason="length", logprobs=[entry(-9.0)]),
    Choice(text='{"a": 1}', finish_reason="stop", logprobs=None),
    Choice(text="null", finish_reason="stop", logprobs=[{"token": "null", "logprob": None}]),
    Choice(text="odd", finish_reason=None, logprobs=[{}]),
    Choice(text="```python\ndef f(x): return x + 1\n```", finish_reason="stop"),
    Choice(tool_calls=({"id": "1", "function": {"name": "add", "arguments": "{}"}},)),
]
CASES = [
    (request, Completion(choices=(answer,), tier="small"))
    for request in REQUESTS
    for answer in ANSWERS
]


@pytest.fixture(params=sorted(JUDGES))
def kind(request):
    return request.param


def built(kind, *answers):
    return load(JUDGES, "judge", kind)(name="j", **options(kind, *answers))


async def outcome(judge, case):
    try:
        return await judge.judge(*case)
    except JudgeError as error:
        return (error.message, error.cost)


async def test_a_verdict_is_well_formed_and_the_same_again_and_together(kind):
    judge = built(kind)
    before = copy.deepcopy(CASES)
    one_by_one = [await outcome(judge, case) for case in CASES]
    together = await asyncio.gather(*(outcome(judge, case) for case in CASES))
    assert one_by_one == list(together)
    assert before == CASES
    for verdict in one_by_one:
        assert verdict.judge == "j"
        assert verdict.score is None or 0.0 <= verdict.score <= 1.0
        assert verdict.reason
        assert verdict.cost is not None
        assert all(isinstance(value, float) for value in verdict.features.values())


async def test_what_it_needs_but_did_not_get_makes_it_unable_to_tell(kind):
    judge = built(kind)
    if "logprobs" in judge.needs:
        completion = Completion(choices=(Choice(text="fine", finish_reason="stop"),))
        assert (await judge.judge(REQUESTS[0], completion)).score is None


def test_needs_are_request_parameters(kind):
    judge = built(kind)
    asked = REQUESTS[0].asking(judge.needs)
    assert all(asked.params[name] == value for name, value in judge.needs.items())


async def test_a_cost_is_reported_whenever_a_model_was_called(kind):
    verdict = await built(kind).judge(*CASES[0])
    if kind in CALLERS:
        assert verdict.cost.total > 0
    else:
        assert verdict.cost == FREE


@pytest.mark.parametrize(
    ("fault", "cost"), [("BackendUnreachableError", FREE), ("BackendTimeoutError", None)]
)
@pytest.mark.parametrize("kind", CALLERS)
async def test_a_model_that_fails_is_an_error_with_its_cost_and_no_score(kind, fault, cost):
    with pytest.raises(JudgeError) as caught:
        await built(kind, {"error": fault}).judge(*CASES[0])
    assert caught.value.cost == cost


def test_every_judge_that_takes_tiers_is_known_to_call_a_model():
    factories = {kind: load(JUDGES, "judge", kind) for kind in JUDGES}
    takes = {k for k, factory in factories.items() if "tiers" in signature(factory).parameters}
    assert takes == set(CALLERS)


@pytest.mark.parametrize("kind", CALLERS)
async def test_a_model_without_a_price_makes_the_cost_unknown(kind):
    verdict = await built(kind, {"text": "yes", "usage": None}).judge(*CASES[0])
    assert verdict.cost is None


def test_an_option_that_cannot_work_is_refused():
    wrong = {
        "agreement": {"k": 0},
        "code": {"allow_execution": False},
        "expected": {"pattern": "(", "reference_tag": None},
        "format": {"language": "elvish"},
        "llm": {"tier": "huge"},
        "logprob": {"statistic": "median"},
        "panel": {"members": []},
        "rules": {"reject": []},
    }
    without_options = {"asked", "working"}
    assert wrong.keys() | without_options == JUDGES.keys()
    for kind, option in wrong.items():
        with pytest.raises(ConfigError):
            load(JUDGES, "judge", kind)(name="j", **{**options(kind), **option})
