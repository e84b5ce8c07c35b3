"""What is made up of answers and judges: it is as it says, and what is believed follows from it."""

import numpy as np
import pytest

from evals.simulate.truth import Question, Skill

SKILL = Skill(abilities={"small": 0.4, "large": 2.0})
BOTH = frozenset({"small", "large"})


def questions(count, skill=SKILL, seed=0):
    random = np.random.default_rng(seed)
    difficulties = skill.between * random.standard_normal(count)
    return [Question.draw(skill, difficulty, random) for difficulty in difficulties]


@pytest.fixture(scope="module")
def many():
    return questions(4000)


@pytest.mark.parametrize("auc", [0.65, 0.85, 0.95])
def test_the_judges_signal_tells_right_from_wrong_as_often_as_it_says(auc):
    skill = Skill(abilities={"one": 0.0}, between=0.0, within=0.0, auc=auc)
    random = np.random.default_rng(1)
    signals = [Question.draw(skill, 0.0, random).signals["one"] for _ in range(40_000)]
    # Half are right. By the formula, the two kinds lie delta^2 apart, with a spread of delta.
    right = skill.delta**2 / 2 + skill.delta * random.standard_normal(40_000)
    wrong = right - skill.delta**2
    assert np.mean(right > random.permutation(wrong)) == pytest.approx(auc, abs=0.01)
    both = np.concatenate([right, wrong])
    places = (0.1, 0.5, 0.9)
    assert np.quantile(signals, places) == pytest.approx(np.quantile(both, places), abs=0.1)


def test_a_signal_for_right_raises_the_quality_and_one_against_lowers_it():
    def quality(signal):
        asked = Question(skill=SKILL, difficulty=0.4, seen=0.4, signals={"small": signal})
        asked.signals["large"] = 0.0
        return asked.quality

    assert quality(0.0)["small"] == pytest.approx(0.5)  # difficulty as large as the ability
    assert quality(np.log(3.0))["small"] == pytest.approx(0.75)
    assert quality(-np.log(3.0))["small"] == pytest.approx(0.25)
    assert quality(5.0)["large"] == quality(-5.0)["large"]


@pytest.mark.parametrize("judged", [frozenset(), frozenset({"small"}), BOTH])
@pytest.mark.parametrize("tier", ["small", "large"])
def test_what_is_believed_is_calibrated(many, judged, tier):
    pairs = sorted((q.after(judged)[tier], q.quality[tier]) for q in many)
    for part in np.array_split(np.array(pairs), 5):
        believed, true = part.mean(axis=0)
        assert believed == pytest.approx(true, abs=0.03)


def test_judging_one_answer_tells_of_the_other_tier_too(many):
    rise = {"small": [], "large": []}
    for each in many:
        before, after = each.after(frozenset()), each.after(frozenset({"small"}))
        for tier, found in rise.items():
            found.append(after[tier] - before[tier])
    assert np.mean(rise["small"]) == pytest.approx(0.0, abs=0.01)
    assert np.corrcoef(rise["small"], rise["large"])[0, 1] > 0.3


def test_the_covariance_is_that_of_what_judging_moves(many):
    moved, told = [], []
    for each in many:
        before, after = each.after(frozenset()), each.after(frozenset({"small"}))
        shift = after["small"] - before["small"]
        moved.append([shift * shift, shift * (after["large"] - before["large"])])
        told.append([each.beliefs.covariance["small", tier] for tier in ("small", "large")])
    assert np.mean(told, axis=0) == pytest.approx(np.mean(moved, axis=0), rel=0.1)


def test_a_better_judge_reveals_more():
    def variance(auc):
        asked = questions(1, Skill(abilities=SKILL.abilities, auc=auc))[0]
        return asked.beliefs.covariance["small", "small"]

    variances = [variance(auc) for auc in (0.65, 0.8, 0.95)]
    assert variances == sorted(variances)
    assert variances[0] < variances[-1] / 2
