import numpy as np
import pytest

from cascade.posterior.heads import Rule
from cascade.types import Verdict
from evals.training.posterior.candidates import (
    Logistic,
    as_it_is,
    inputs_of,
    log_loss,
    numbers,
    simplest,
)
from evals.training.posterior.rows import JudgedPrompt, labels_of

TIERS = ["small", "large"]


def rows(count=120):
    """A row in three has no feature, one in four says nothing of large."""
    rng = np.random.default_rng(0)
    made = []
    for at in range(count):
        z = float(rng.normal())
        made.append(
            JudgedPrompt(
                prompt=str(at),
                group=str(at),
                split="fit",
                right={"small": z + rng.normal() > 0, "large": at % 3 > 0},
                estimate={"small": float(rng.uniform()), "large": 1.0},
                verdicts={
                    "small": Verdict(
                        judge="j",
                        score=float(rng.uniform()),
                        others={"large": float(rng.uniform())} if at % 4 else {},
                        features={"z": z, "twin": -z} if at % 3 else {},
                    )
                },
            )
        )
    return made


@pytest.mark.parametrize("most", [0, 1, 5])
def test_what_is_applied_is_what_was_fitted_also_where_numbers_are_absent(most):
    made = rows()
    base, more = inputs_of(made, TIERS, ["small"])
    x, y = numbers(made, [*base, *more]), labels_of(made, "small")
    assert np.isnan(x).any()
    model = Logistic(len(base), most, 1.0).fit(x, y)
    head = model.head([*base, *more])
    for row, log_odds in zip(made, model.log_odds(x), strict=True):
        chance = head.chance(row.estimate, row.verdicts)
        assert chance == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=1e-4)


def test_of_two_features_that_say_the_same_one_is_looked_at():
    made = rows()
    base, more = inputs_of(made, TIERS, ["small"])
    x, y = numbers(made, [*base, *more]), labels_of(made, "small")
    head = Logistic(len(base), 5, 1.0).fit(x, y).head([*base, *more])
    assert [each.name for each in head.inputs if each.source == "feature"] == ["twin"]


def test_a_number_that_never_varies_is_left_out():
    made = rows()
    base, more = inputs_of(made, TIERS, ["small"])
    x, y = numbers(made, [*base, *more]), labels_of(made, "small")
    head = Logistic(len(base), 0, 1.0).fit(x, y).head([*base, *more])
    assert "large" not in [each.tier for each in head.inputs if each.source == "prior"]


def test_labels_of_one_kind_give_a_probability_inside_the_scale():
    x, y = np.zeros((50, 1)), np.ones(50, dtype=bool)
    (told,) = set(Logistic(1, 0, 1.0).fit(x, y).log_odds(x))
    assert told == pytest.approx(np.log(51))


def chosen(count, better):
    """Of two candidates: one at .5, and one that is better than that by so much on every row."""
    y = np.arange(count) % 2 == 0
    groups = np.array([str(at) for at in range(count)])
    noise = np.random.default_rng(0).normal(0, 0.2, count)
    plain = np.full(count, 0.5)
    rich = np.clip(np.where(y, 0.5 + better, 0.5 - better) + noise, 0.05, 0.95)
    made = [as_it_is("prior", Rule.PRIOR, plain), as_it_is("verdict", Rule.VERDICT, rich)]
    return simplest(made, y, groups).name


def test_the_simplest_is_taken_unless_another_is_better_by_more_than_chance():
    assert chosen(200, 0.2) == "verdict"
    assert chosen(200, 0.05) == "prior"
    assert chosen(200, -0.2) == "prior"


def test_on_few_rows_verdicts_are_taken_at_their_word():
    assert chosen(30, -0.2) == "verdict"


def test_a_loss_is_finite_where_certainty_was_wrong():
    lost = log_loss(np.array([0.0, 1.0, 0.5]), np.array([True, True, False]))
    assert lost == pytest.approx([-np.log(0.002), -np.log(0.998), np.log(2)])
