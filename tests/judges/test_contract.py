"""What every judge in the registry must do; a new line there brings these tests with it."""

import copy

import pytest

from cascade.registry import load
from cascade.types import ChatRequest, Choice, Completion
from judges.format import FormatJudge
from judges.logprob import LogprobJudge
from judges.registry import JUDGES

OPTIONS = {"panel": {"members": [FormatJudge(), LogprobJudge()]}}


def entry(logprob, token="x"):
    top = [{"token": token, "logprob": logprob}, {"token": "y", "logprob": -3.0}]
    return {"token": token, "bytes": list(token.encode()), "logprob": logprob, "top_logprobs": top}


REQUESTS = [
    ChatRequest(id="1", messages=[{"role": "user", "content": "hi"}]),
    ChatRequest(id="2", messages=[], params={"max_tokens": 1}),
    ChatRequest(id="3", messages=[], params={"response_format": {"type": "json_object"}}),
]
ANSWERS = [
    Choice(text="fine", finish_reason="stop", logprobs=[entry(-0.1), entry(-0.4)]),
    Choice(text="", finish_reason="stop", logprobs=[]),
    Choice(text="cut of", finish_reason="length", logprobs=[entry(-9.0)]),
    Choice(text='{"a": 1}', finish_reason="stop", logprobs=None),
    Choice(text="null", finish_reason="stop", logprobs=[{"token": "null", "logprob": None}]),
    Choice(text="odd", finish_reason=None, logprobs=[{}]),
]
CASES = [(request, Completion(choices=(answer,))) for request in REQUESTS for answer in ANSWERS]


@pytest.fixture(params=sorted(JUDGES))
def judge(request):
    return load(JUDGES, "judge", request.param)(name="j", **OPTIONS.get(request.param, {}))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
async def test_a_verdict_is_well_formed_and_the_same_again(judge, case):
    request, completion = case
    before = copy.deepcopy(case)
    verdict = await judge.judge(request, completion)
    assert verdict.judge == "j"
    assert verdict.score is None or 0.0 <= verdict.score <= 1.0
    assert verdict.reason
    assert verdict.cost is not None
    assert all(isinstance(value, float) for value in verdict.features.values())
    assert await judge.judge(request, completion) == verdict
    assert case == before


async def test_what_it_needs_but_did_not_get_makes_it_unable_to_tell(judge):
    if "logprobs" in judge.needs:
        completion = Completion(choices=(Choice(text="fine", finish_reason="stop"),))
        assert (await judge.judge(REQUESTS[0], completion)).score is None


def test_needs_are_request_parameters(judge):
    asked = REQUESTS[0].asking(judge.needs)
    assert all(asked.params[name] == value for name, value in judge.needs.items())
