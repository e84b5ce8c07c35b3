import math

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion
from judges.logprob import LogprobJudge, features_of

REQUEST = ChatRequest(id="r", messages=[])


def entry(logprob, *top, token="x", bytes_=(120,)):
    return {
        "token": token,
        "bytes": list(bytes_) if bytes_ is not None else None,
        "logprob": logprob,
        "top_logprobs": [{"logprob": value} for value in top],
    }


def completion(*entries):
    return Completion(choices=(Choice(text="x", finish_reason="stop", logprobs=entries),))


def test_features_are_the_ones_a_hand_computes():
    features = features_of([entry(-0.1, -0.1, -2.1), entry(-0.5, -0.5, -1.0)])
    assert features == pytest.approx(
        {
            "mean": -0.3,
            "sum": -0.6,
            "min": -0.5,
            "first": -0.1,
            "tokens": 2.0,
            "margin_mean": 1.25,
            "margin_min": 0.5,
        }
    )


def test_end_of_text_tokens_do_not_count():
    text = [entry(-0.1), entry(-0.5)]
    ended = [*text, entry(-4.0, token="", bytes_=()), entry(-4.0, token="", bytes_=None)]
    assert features_of(ended) == features_of(text)


@pytest.mark.parametrize(
    "entries",
    [
        None,
        [],
        [entry(None)],
        [entry(-0.1), entry(None)],
        [entry(-0.1), entry("low")],
        [entry(float("nan"))],
        [entry(float("-inf"))],
    ],
)
def test_missing_log_probabilities_are_no_features(entries):
    assert features_of(entries) is None


@pytest.mark.parametrize(("statistic", "value"), [("mean", -0.3), ("min", -0.5), ("first", -0.1)])
async def test_the_score_is_the_exponential_of_the_chosen_statistic(statistic, value):
    judge = LogprobJudge(statistic=statistic)
    verdict = await judge.judge(REQUEST, completion(entry(-0.1), entry(-0.5)))
    assert verdict.score == pytest.approx(math.exp(value))
    assert not verdict.final


async def test_a_positive_log_probability_does_not_leave_the_unit_interval():
    verdict = await LogprobJudge().judge(REQUEST, completion(entry(1e-6)))
    assert verdict.score == 1.0


def test_an_unknown_statistic_is_refused():
    with pytest.raises(ConfigError, match="median"):
        LogprobJudge(statistic="median")
