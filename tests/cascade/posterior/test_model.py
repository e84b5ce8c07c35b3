import math

import pytest

from cascade.errors import ConfigError
from cascade.posterior import Identity
from cascade.posterior.artifact import parse
from cascade.types import Beliefs, Verdict
from tests.cascade.posterior.made import content

PRIOR = Beliefs(mean={"small": 0.3, "large": 0.9, "other": 0.7})
LOOKS = Identity(name="looks", digest="cd")


@pytest.fixture
def model():
    return parse(content())


@pytest.fixture
def prior(model):
    return model.before(PRIOR)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def verdict(score, **fields):
    return Verdict(judge="sound", score=score, **fields)


def test_before_any_call_the_estimate_is_recalibrated(model):
    told = model.before(PRIOR)
    assert told.mean == {"small": pytest.approx(sigmoid(0.5)), "large": 0.9, "other": 0.7}


def test_the_covariance_is_the_share_that_a_verdict_is_expected_to_explain(model):
    told = model.before(PRIOR)
    small, large = (math.sqrt(p * (1 - p)) for p in (told.mean["small"], 0.9))
    assert told.covariance == {
        ("small", "small"): pytest.approx(0.25 * small * small),
        ("small", "large"): pytest.approx(-0.1 * small * large),
    }


def test_a_verdict_moves_its_own_tier_and_the_others(model, prior):
    said = verdict(0.6, features={"margin": 1.5}, others={"large": 0.1})
    told = model.after(prior, [("small", said)])
    log_odds = 0.25 + 0.5 * math.log(9) + math.log(1.5) + 2 * 1.5
    assert told.mean["small"] == 0.6
    assert told.mean["large"] == pytest.approx(sigmoid(log_odds))
    assert told.mean["other"] == 0.7
    assert told.covariance == {}


def test_a_feature_that_is_missing_counts_as_it_did_in_the_mean(model, prior):
    told = model.after(prior, [("small", verdict(0.5))])
    assert told.mean["large"] == pytest.approx(sigmoid(0.25 + 0.5 * math.log(9) + 2 * 0.125))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_a_score_at_the_end_of_the_scale_leaves_finite_beliefs(model, prior, score):
    told = model.after(prior, [("small", verdict(score))])
    assert told.mean["small"] == score
    assert 0.0 < told.mean["large"] < 1.0


@pytest.mark.parametrize("said", [None, verdict(None)])
def test_a_judge_that_cannot_tell_changes_no_mean_but_its_tier_was_tried(model, prior, said):
    told = model.after(prior, [("small", said)])
    assert told.mean == prior.mean
    assert told.covariance == {}


def test_a_final_verdict_is_a_fact_and_not_weighed(model, prior):
    told = model.after(prior, [("small", verdict(0.0, final=True))])
    assert (told.mean["small"], told.mean["large"]) == (0.0, 0.9)


def test_a_verdict_of_a_tier_that_was_never_judged_in_the_fit_is_taken_at_its_word(model, prior):
    said = verdict(0.2, others={"small": 0.1})
    told = model.after(prior, [("large", said)])
    assert (told.mean["small"], told.mean["large"]) == (0.1, 0.2)
    assert ("small", "small") in told.covariance
    both = model.after(prior, [("small", verdict(0.6)), ("large", verdict(0.2))])
    assert (both.mean["small"], both.mean["large"]) == (0.6, 0.2)


def test_of_two_verdicts_on_one_tier_the_last_counts(model, prior):
    told = model.after(prior, [("small", verdict(0.1)), ("small", verdict(0.6))])
    assert told == model.after(prior, [("small", verdict(0.6))])


def test_where_no_estimator_spoke_the_rates_of_the_fit_stand_in(model):
    unknown = Beliefs(mean={"small": 0.5, "large": 0.5}, flags=frozenset({"fallback"}))
    assert model.before(unknown).mean["large"] == 0.8
    assert model.before(Beliefs(mean={"small": 0.5, "large": 0.5})).mean["large"] == 0.5
    assert model.before(Beliefs(mean={"small": 0.5})).mean["large"] == 0.8


def test_all_else_of_the_beliefs_stays(model):
    flagged = Beliefs(mean=PRIOR.mean, flags=frozenset({"out_of_domain"}), features={"a": 1.0})
    told = model.after(model.before(flagged), [("small", verdict(0.6))])
    assert (told.flags, told.features) == (flagged.flags, flagged.features)


def test_it_serves_the_configuration_it_was_fitted_for(model):
    sound = Identity(name="sound", digest="ab")
    model.check(tiers=["small", "large"], judges={"small": sound}, estimator=LOOKS)
    # Nothing is known of verdicts on large, so anybody may judge it; and a digest may be unknown.
    anybody = {"small": Identity(name="sound"), "large": Identity(name="graded")}
    model.check(tiers=["large"], judges=anybody, estimator=Identity(name="looks"))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"tiers": ["small", "huge"]}, "tiers small, large, and not for huge"),
        ({"judges": {"small": Identity(name="graded")}}, "on small of sound, and not of graded"),
        (
            {"judges": {"small": Identity(name="sound", digest="xy")}},
            "verdicts on small of another sound: its options or its artifact have changed",
        ),
        ({"estimator": Identity(name="")}, "estimates of looks, and not of nobody"),
        ({"estimator": Identity(name="looks", digest="xy")}, "estimates of another looks"),
    ],
)
def test_it_refuses_another_configuration(model, changed, complaint):
    fits = {"tiers": ["small", "large"], "judges": {}, "estimator": LOOKS}
    with pytest.raises(ConfigError, match=complaint):
        model.check(**(fits | changed))


def test_another_model_behind_a_tier_is_warned_of(model):
    assert model.warnings({"small": "tiny-1", "large": "any"}) == []
    (warning,) = model.warnings({"small": "tiny-2"})
    assert warning == "it was fitted on answers of tiny-1, and tier small serves tiny-2"
