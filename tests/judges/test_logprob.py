import math
import statistics
import time

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion
from judges.logprob import LogprobJudge, RunningLogprobs, features_of

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
    shares = [(0.904837, 0.122456), (0.606531, 0.367879)]
    entropies = []
    for one in shares:
        rest = max(0.0, 1 - sum(one))
        entropies.append(-sum(p * math.log(p) for p in (*one, rest) if p))
    assert features == pytest.approx(
        {
            "mean": -0.3,
            "sum": -0.6,
            "min": -0.5,
            "first": -0.1,
            "tokens": 2.0,
            "q10": -0.46,
            "q25": -0.4,
            "q50": -0.3,
            "margin_mean": 1.25,
            "margin_min": 0.5,
            "margin_first": 2.0,
            "entropy_mean": sum(entropies) / 2,
            "entropy_max": max(entropies),
        },
        rel=1e-4,
    )


def test_quantiles_are_those_of_statistics():
    values = [-0.05 * i * i for i in range(1, 24)]
    features = features_of([entry(value) for value in values])
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    found = [features[name] for name in ("q10", "q25", "q50")]
    assert found == pytest.approx([cuts[1], cuts[4], cuts[9]])


def test_the_answer_begins_behind_white_space_and_markup():
    words = [(" \n", -3.0), ("**", -2.0), ("Paris", -0.5), (" is", -0.1)]
    entries = [entry(v, v, v - i, bytes_=t.encode()) for i, (t, v) in enumerate(words, 1)]
    features = features_of(entries)
    assert (features["first"], features["margin_first"]) == (-0.5, pytest.approx(3.0))
    assert features_of(entries[:2])["first"] == -3.0


def test_punctuation_can_be_left_out():
    parts = [('{"', -4.0), ("age", -0.1), ('":', -4.0), (" 31", -0.3), ("}", -4.0)]
    entries = [entry(value, bytes_=text.encode()) for text, value in parts]
    features = features_of(entries, words_only=True)
    assert (features["tokens"], features["min"]) == (2.0, -0.3)
    assert features_of(entries[:1], words_only=True) is None


def test_part_of_a_character_counts_as_text():
    entries = [entry(-0.2, bytes_=(195,)), entry(-0.4, bytes_=(164,))]
    assert features_of(entries, words_only=True)["tokens"] == 2.0


def test_a_growing_answer_has_at_every_point_the_features_of_what_there_is():
    entries = [entry(-0.1 * i, -0.1 * i, -5.0, token="ab "[i % 3]) for i in range(1, 40)]
    running = RunningLogprobs()
    for count, each in enumerate(entries, 1):
        running.add([each])
        assert running.features() == pytest.approx(features_of(entries[:count]))
    running.add([entry(None)])
    assert running.features() is None


async def test_a_partial_answer_is_scored_as_far_as_it_goes():
    whole = completion(entry(-0.1), entry(-0.5))
    begun = Completion(choices=(Choice(text="x", logprobs=[entry(-0.1)]),), partial=True)
    judge = LogprobJudge(statistic="min")
    assert (await judge.judge(REQUEST, begun)).score == pytest.approx(math.exp(-0.1))
    assert (await judge.judge(REQUEST, whole)).score == pytest.approx(math.exp(-0.5))


def test_a_long_answer_is_read_in_no_time():
    entries = [entry(-0.001 * (i % 977), -0.1, -2.0) for i in range(4000)]
    began = time.perf_counter()
    features_of(entries)
    assert time.perf_counter() - began < 1


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


@pytest.mark.parametrize(
    ("statistic", "score"),
    [("sum", math.exp(-0.6)), ("q50", math.exp(-0.3)), ("margin_min", 1 / (1 + math.exp(-0.5)))],
)
async def test_every_statistic_is_brought_to_a_probability(statistic, score):
    judge = LogprobJudge(statistic=statistic)
    answer = completion(entry(-0.1, -0.1, -2.1), entry(-0.5, -0.5, -1.0))
    assert (await judge.judge(REQUEST, answer)).score == pytest.approx(score)


@pytest.mark.parametrize(
    "statistic", ["margin_mean", "margin_first", "entropy_mean", "entropy_max"]
)
async def test_margins_and_entropies_cannot_be_told_without_alternatives(statistic):
    verdict = await LogprobJudge(statistic=statistic).judge(REQUEST, completion(entry(-0.1)))
    assert verdict.score is None
    assert verdict.features["mean"] == -0.1


async def test_a_positive_log_probability_does_not_leave_the_unit_interval():
    verdict = await LogprobJudge().judge(REQUEST, completion(entry(1e-6)))
    assert verdict.score == 1.0


def test_an_unknown_statistic_is_refused():
    with pytest.raises(ConfigError, match="median"):
        LogprobJudge(statistic="median")
