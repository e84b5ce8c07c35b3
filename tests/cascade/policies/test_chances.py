"""What a judge may say of an answer that is not there yet."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.policies.chances import Judgement

MEANS = st.floats(0.0, 1.0)


def mean_of(cases):
    return sum(weight * score for weight, score in cases)


def share_revealed(cases, mean):
    return sum(w * (score - mean) ** 2 for w, score in cases) / (mean * (1.0 - mean))


@given(mean=MEANS, revealed=MEANS)
def test_cases_are_probabilities_and_their_mean_is_what_was_believed(mean, revealed):
    cases = Judgement(revealed).cases(mean)
    assert math.isclose(sum(weight for weight, _ in cases), 1.0, abs_tol=1e-12)
    assert all(weight > 0.0 and -1e-12 <= score <= 1.0 + 1e-12 for weight, score in cases)
    assert math.isclose(mean_of(cases), mean, abs_tol=1e-9)


@pytest.mark.parametrize("revealed", [0.02, 0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize(("mean", "least"), [(0.5, 0.85), (0.3, 0.8), (0.7, 0.8), (0.9, 0.4)])
def test_they_vary_about_as_much_as_was_revealed(mean, least, revealed):
    share = share_revealed(Judgement(revealed).cases(mean), mean) / revealed
    assert least <= share <= 1.25


def test_what_is_revealed_grows_with_the_judge():
    found = [share_revealed(Judgement(r / 20).cases(0.4), 0.4) for r in range(1, 20)]
    assert found == sorted(found)
    assert found[-1] > 5 * found[0]


def test_right_and_wrong_answers_are_mirror_images():
    judgement = Judgement(0.4)
    scores = sorted(score for _, score in judgement.cases(0.3))
    mirrored = sorted(1.0 - score for _, score in judgement.cases(0.7))
    assert scores == pytest.approx(mirrored)


def test_a_verdict_makes_right_answers_likelier_and_wrong_ones_less_likely_in_odds():
    right, wrong = Judgement(0.3).odds
    (_, up), (_, down) = right[1], wrong[1]  # the middle nodes
    assert up > 1.0 > down
    assert math.isclose(up * down, 1.0)
    assert Judgement(0.0).odds == ((), ())


def test_a_silent_judge_leaves_what_was_believed():
    assert Judgement(0.0).cases(0.37) == ((1.0, 0.37),)


def test_a_knowing_judge_says_right_or_wrong():
    cases = Judgement(1.0).cases(0.37)
    assert all(min(score, 1.0 - score) < 0.02 for _, score in cases)
    assert sum(w for w, score in cases if score > 0.5) == pytest.approx(0.37, abs=0.01)


@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_of_what_is_certain_no_judge_says_anything_new(mean):
    assert Judgement(0.5).cases(mean) == ((1.0, mean),)
