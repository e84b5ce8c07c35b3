import numpy as np
import pytest

from evals.training.preferences import Answered, labels, unfit

PROMPT = "hash"


def answer(tier, word=None, prompt=PROMPT):
    return Answered(tier=tier, prompt=prompt, word=word)


SMALL, LARGE = answer("small"), answer("large")


@pytest.mark.parametrize(
    ("preferred", "small", "large"),
    [("this", 2 / 3, 1 / 3), ("other", 1 / 3, 2 / 3), ("same", 1 / 2, 1 / 2)],
)
def test_a_comparison_alone_gives_the_means_of_two_ordered_values(preferred, small, large):
    assert labels([(SMALL, LARGE, preferred)]) == {"small": small, "large": large}


def test_these_are_the_means_of_two_values_drawn_alike():
    drawn = np.sort(np.random.default_rng(1).random((100_000, 2)), axis=1).mean(axis=0)
    np.testing.assert_allclose(drawn, [1 / 3, 2 / 3], atol=0.01)


@pytest.mark.parametrize(("preferred", "large"), [("this", 0.3), ("other", 0.8), ("same", 0.6)])
def test_what_is_known_of_one_answer_bounds_the_other(preferred, large):
    found = labels([(answer("small", 0.6), LARGE, preferred)])
    assert found["small"] == 0.6
    assert found["large"] == pytest.approx(large)


def test_several_comparisons_count_as_their_mean_and_after_what_was_said():
    twice = [(SMALL, LARGE, "this"), (SMALL, LARGE, "other")]
    assert labels(twice) == {"small": pytest.approx(0.5), "large": pytest.approx(0.5)}
    assert labels([*twice, (answer("small", 1.0), LARGE, "same")])["small"] == 1.0


def test_only_answers_of_two_tiers_to_one_prompt_say_something_of_tiers():
    assert unfit(SMALL, LARGE) is None
    assert "one tier" in unfit(SMALL, SMALL)
    assert "same prompt" in unfit(SMALL, answer("large", prompt="else"))
    assert "same prompt" in unfit(answer("small", prompt=""), answer("large", prompt=""))
