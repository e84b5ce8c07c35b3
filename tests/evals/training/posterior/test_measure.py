from dataclasses import replace

import pytest

from cascade.posterior import Identity
from evals.metrics import auroc
from evals.training.posterior.card import card
from evals.training.posterior.measure import measured
from evals.training.posterior.train import train
from tests.evals.training.posterior.probit import World


@pytest.fixture(scope="module")
def model():
    world, unseen = World(600, rho=0.9), World(300, rho=0.9, seed=3)
    tested = [
        replace(row, prompt=f"t{row.prompt}", group=f"t{row.group}", split="test")
        for row in unseen.rows()
    ]
    left = [replace(row, split="calibrate") for row in World(50, seed=4).rows()]
    return train(
        [*world.rows(), *tested, *left],
        dict.fromkeys(world.tiers, ""),
        judges=dict.fromkeys(world.tiers, Identity(name="sound")),
        estimator=Identity(name="looks"),
    )


def test_rows_of_each_split_are_used_for_one_thing(model):
    assert model.manifest.rows == {"fit": 600, "calibrate": 50, "test": 300}
    metrics = model.manifest.metrics
    assert (metrics["cross_validated"]["n"], metrics["test"]["n"]) == (600, 300)


def test_a_posterior_that_knows_more_than_either_part_beats_both(model):
    (after,) = [s for s in model.manifest.metrics["test"]["sets"] if s["tried"] == ["small"]]
    of_small, of_large = after["tiers"]["small"], after["tiers"]["large"]
    assert (after["n"], after["groups"]) == (300, 300)
    for baseline in ("prior", "verdict"):
        middle, low, high = of_small["gain_over"][baseline]
        assert 0.0 < low < middle < high
        assert of_small["log_loss"]["model"] < of_small["log_loss"][baseline]
        assert of_small["brier"]["model"] < of_small["brier"][baseline]
        assert of_small["auc"]["model"] > of_small["auc"][baseline]
    # The verdict on small says nothing of large by itself.
    assert of_large["log_loss"]["prior"] == of_large["log_loss"]["verdict"]
    assert of_large["gain_over"]["prior"][1] > 0.0


def test_before_any_verdict_the_baselines_are_the_estimate(model):
    before = model.manifest.metrics["test"]["sets"][0]
    assert before["tried"] == []
    for each in before["tiers"].values():
        assert each["log_loss"]["prior"] == each["log_loss"]["verdict"]


def test_kappas_come_with_intervals_that_hold_them_on_other_rows(model):
    part = model.manifest.metrics["cross_validated"]["kappas"]
    test = model.manifest.metrics["test"]["kappas"]
    assert len(part) == len(test) == 8
    inside = 0
    for each, other in zip(part, test, strict=True):
        middle, low, high = each["kappa"]
        assert low <= middle <= high
        inside += other["kappa"][1] <= middle <= other["kappa"][2]
    assert inside >= 6


def test_the_card_says_what_it_was_fitted_on_and_what_it_is_worth(model):
    text = card(model, "p.json")
    for part in (
        "# Model card: p.json",
        "| judges | small: sound, large: sound |",
        "| rows | 600 fit, 50 calibrate, 300 test |",
        model.manifest.data,
        "300 test rows, which nothing was fitted or chosen on; 300 groups.",
        "| small | large | large |",
        "| nobody | small | 300 | 300 |",
        "Log loss that the model saves:",
    ):
        assert part in text


def test_the_area_under_the_curve_counts_ties_half():
    world = World(60, seed=5)
    rows = [
        replace(row, estimate={t: round(p, 1) for t, p in row.estimate.items()})
        for row in world.rows()
    ]
    nobody = frozenset()
    found = measured(rows, world.tiers, {nobody: world.means([])}, [nobody])
    expected = auroc([row.estimate["small"] for row in rows], [row.right["small"] for row in rows])
    assert found["sets"][0]["tiers"]["small"]["auc"]["prior"] == pytest.approx(expected, abs=1e-4)
