import pytest

from cascade.posterior import KAPPA, Unfitted, update
from cascade.types import Beliefs, Verdict

PRIOR = Beliefs(mean={"small": 0.3, "large": 0.9})


def test_without_a_model_the_estimate_stays_and_each_tier_may_move_by_itself():
    told = Unfitted(kappa=0.5).before(PRIOR)
    assert told.mean == PRIOR.mean
    assert told.covariance == {
        ("small", "small"): pytest.approx(0.5 * 0.3 * 0.7),
        ("large", "large"): pytest.approx(0.5 * 0.9 * 0.1),
    }


def test_without_a_model_verdicts_are_taken_at_their_word_in_their_order():
    first = Verdict(judge="j", score=0.2, others={"large": 0.6})
    told = Unfitted().after(PRIOR, [("small", first), ("large", None)])
    assert told.mean == update(PRIOR, "small", first).mean == {"small": 0.2, "large": 0.6}
    assert told.covariance == {}
    alone = Unfitted().after(PRIOR, [("small", first)])
    assert alone.covariance == {("large", "large"): pytest.approx(KAPPA * 0.6 * 0.4)}


@pytest.mark.parametrize("said", [None, Verdict(judge="j", score=None)])
def test_a_judge_that_cannot_tell_leaves_the_beliefs(said):
    assert update(PRIOR, "small", said) is PRIOR
