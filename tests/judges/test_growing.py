"""Judges that say they can look at a growing answer, and those that say they cost nothing."""

import pytest

from cascade.calibration import MonotoneMap
from cascade.early import beginning, free, growing
from cascade.registry import load
from cascade.types import ChatRequest, Choice, Completion
from judges.calibrated import CalibratedJudge
from judges.format import FormatJudge
from judges.logprob import LogprobJudge
from judges.panel import PanelJudge
from judges.registry import JUDGES

REQUEST = ChatRequest(id="r", messages=[{"role": "user", "content": "Say it as JSON."}])
WORDS = ['{"', "said", '": ', "true", "}"]
WHOLE = Completion(
    choices=[
        Choice(
            text="".join(WORDS),
            finish_reason="stop",
            logprobs=[{"token": w, "logprob": -0.5, "bytes": list(w.encode())} for w in WORDS],
        )
    ]
)
GROWING = [name for name in JUDGES if growing(load(JUDGES, "judge", name))]


def test_only_judges_that_read_no_form_and_ask_no_model_can_look_early():
    assert GROWING == ["asked", "logprob"]
    asking = {"agreement", "llm", "code"}
    assert not asking & {name for name in JUDGES if free(load(JUDGES, "judge", name))}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("length", [1, 3, 5])
async def test_a_start_is_no_fault_whatever_its_length(name, length):
    judge = load(JUDGES, "judge", name)(name=name)
    verdict = await judge.judge(REQUEST, beginning(WHOLE, length))
    assert not verdict.final
    assert verdict.cost.total == 0


async def test_a_start_scores_what_a_whole_answer_of_these_tokens_would():
    judge = LogprobJudge(statistic="sum")
    scores = [(await judge.judge(REQUEST, beginning(WHOLE, n))).score for n in range(1, 6)]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == (await judge.judge(REQUEST, WHOLE)).score


def test_what_wraps_judges_can_do_what_all_of_them_can():
    sure, whole = LogprobJudge(), FormatJudge()
    fitted = MonotoneMap([0.0, 1.0], [0.0, 1.0])
    assert growing(CalibratedJudge(sure, fitted))
    assert growing(PanelJudge(name="p", members=[sure, CalibratedJudge(sure, fitted)]))
    panel = PanelJudge(name="p", members=[whole, sure])
    assert not growing(panel)
    assert free(panel)
    assert not growing(CalibratedJudge(whole, fitted))
