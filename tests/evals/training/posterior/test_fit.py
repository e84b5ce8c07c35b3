import random
from dataclasses import replace

import numpy as np
import pytest

from cascade.posterior import Identity, Manifest, Model
from cascade.types import Beliefs, Verdict
from evals.training.posterior.fit import Recipe, fit_posterior
from evals.training.posterior.measure import told
from evals.training.posterior.rows import JudgedPrompt
from evals.training.rows import TrainingError
from tests.evals.training.posterior.probit import World

NOBODY, SMALL = frozenset(), frozenset({"small"})


def fitted(rows, world, **recipe):
    return fit_posterior(rows, world.tiers, world.tiers, Recipe(**recipe))


def applied(found, world):
    manifest = Manifest(
        models=dict.fromkeys(world.tiers, ""),
        judges={},
        estimator=Identity(name=""),
        rates=dict.fromkeys(world.tiers, 0.5),
    )
    return Model(manifest=manifest, heads=found.heads, kappas=found.kappas)


@pytest.mark.parametrize("world", [{}, {"rho": -0.4}, {"rho": 0.9, "noise": 0.5}], ids=str)
def test_what_a_verdict_moves_is_recovered_for_each_pair_of_tiers(world):
    drawn = World(2_000, **world)
    found = fitted(drawn.rows(), drawn)
    true = World(20_000, seed=1, **world).kappas()
    assert len(true) == 8
    for (tried, judged, moved), kappa in true.items():
        assert found.kappas[frozenset(tried)][judged, moved] == pytest.approx(kappa, abs=0.04)


def test_what_is_believed_after_verdicts_is_near_the_truth_on_rows_it_has_not_seen():
    world, unseen = World(2_000), World(500, seed=2)
    model = applied(fitted(world.rows(), world), world)
    sets = [frozenset(tried) for tried in ([], ["small"], ["large"], ["small", "large"])]
    for tried, means in told(model, unseen.rows(), sets).items():
        true = unseen.means([tier for tier in world.tiers if tier in tried])
        assert np.abs(means - true).mean() < 0.03


def test_the_covariance_says_how_far_the_means_will_move():
    world, unseen = World(2_000), World(2_000, seed=2)
    model = applied(fitted(world.rows(), world), world)
    expected, seen = {("small", "small"): 0.0, ("small", "large"): 0.0}, np.zeros((2_000, 2))
    for at, row in enumerate(unseen.rows()):
        before = model.before(Beliefs(mean=row.estimate))
        after = model.after(before, [("small", row.verdicts["small"])])
        seen[at] = [after.mean[tier] - before.mean[tier] for tier in world.tiers]
        for pair in expected:
            expected[pair] += before.covariance[pair] / 2_000
    assert expected["small", "small"] == pytest.approx(np.mean(seen[:, 0] ** 2), rel=0.1)
    assert expected["small", "large"] == pytest.approx(np.mean(seen[:, 0] * seen[:, 1]), rel=0.2)


def test_a_judge_that_says_nothing_moves_nothing_and_the_estimate_stands():
    world = World(600, noise=None)
    found = fitted(world.rows(), world)
    assert all(set(names.values()) == {"prior"} for names in found.chosen.values())
    assert all(kappa == 0.0 for each in found.kappas.values() for kappa in each.values())


def test_an_oracle_moves_all_there_is():
    world = World(600)
    rows = [
        replace(
            row,
            verdicts={t: Verdict(judge="j", score=float(row.right[t])) for t in world.tiers},
        )
        for row in world.rows()
    ]
    found = fitted(rows, world)
    assert found.chosen[SMALL]["small"] == "verdict"
    assert found.kappas[NOBODY]["small", "small"] == pytest.approx(1.0, abs=0.03)


def test_a_score_that_is_the_probability_already_is_taken_at_its_word():
    world = World(600)
    after = [world.means([tier])[:, at] for at, tier in enumerate(world.tiers)]
    rows = [
        replace(
            row,
            verdicts={
                tier: Verdict(judge="j", score=float(after[column][at]))
                for column, tier in enumerate(world.tiers)
            },
        )
        for at, row in enumerate(world.rows())
    ]
    found = fitted(rows, world)
    assert found.chosen[SMALL]["small"] == "verdict"
    assert found.chosen[frozenset({"large"})]["large"] == "verdict"


def test_an_estimate_that_tells_nothing_apart_is_replaced_by_the_rate():
    world, rng = World(600), random.Random(1)  # noqa: S311 - made-up data
    rows = [
        replace(row, estimate={"small": rng.uniform(0.7, 0.9), "large": 0.5})
        for row in world.rows()
    ]
    found = fitted(rows, world)
    assert found.chosen[NOBODY] == {"small": "rate", "large": "rate"}
    rate = np.mean([row.right["small"] for row in rows])
    head = found.heads[NOBODY]["small"]
    assert head.chance({"small": 0.9}, {}) == pytest.approx(rate, abs=0.01)


def test_a_feature_that_tells_more_than_the_score_is_looked_at():
    world = World(600, noise=None)
    rows = [
        replace(
            row,
            verdicts={
                "small": Verdict(
                    judge="j",
                    score=0.5,
                    features={"z": float(world.z[at, 0]), "chance": float(at % 7), "same": 1.0},
                )
            },
        )
        for at, row in enumerate(world.rows())
    ]
    found = fitted(rows, world, features=1)
    assert found.chosen[SMALL]["small"] == "features"
    names = [each.name for each in found.heads[SMALL]["small"].inputs if each.name]
    assert names == ["z"]
    assert found.kappas[NOBODY]["small", "small"] > 0.5
    assert "features" not in fitted(rows, world, features=0).chosen[SMALL].values()


def test_rows_where_the_judge_cannot_tell_do_not_move():
    world = World(1_000)
    silent = [
        replace(row, verdicts={}) if at % 2 else row
        for at, row in enumerate(world.rows(judged=["small"]))
    ]
    found = fitted(silent, world)
    moved = (found.held_out[SMALL] - found.held_out[NOBODY])[:, 0]
    assert np.all(moved[1::2] == 0.0)
    assert np.all(moved[::2] != 0.0)
    whole = fitted(world.rows(judged=["small"]), world).kappas[NOBODY]["small", "small"]
    half = found.kappas[NOBODY]["small", "small"]
    assert half == pytest.approx(whole / 2, abs=0.05)


def test_final_verdicts_are_not_learned_from_but_count_in_what_is_expected_of_a_judge():
    world = World(400)
    fault = Verdict(judge="j", score=0.0, final=True)
    rows = [
        replace(row, verdicts=row.verdicts if at % 10 else {**row.verdicts, "large": fault})
        for at, row in enumerate(world.rows(judged=["small"]))
    ]
    found = fitted(rows, world)
    assert set(found.heads) == {NOBODY, SMALL}
    assert found.kappas[NOBODY]["large", "large"] > 0.05
    assert found.kappas[SMALL]["large", "large"] > 0.05
    assert found.kappas[NOBODY]["large", "small"] == 0.0


def test_of_a_tier_whose_verdicts_nobody_sought_nothing_is_said():
    world = World(200)
    found = fit_posterior(world.rows(judged=["small"]), world.tiers, ["small"])
    assert {judged for judged, _ in found.kappas[NOBODY]} == {"small"}


def test_a_group_is_never_on_both_sides_so_a_name_cannot_be_learned_by_heart():
    rng = np.random.default_rng(0)
    rows = []
    for at in range(200):  # a feature that names the group, whose rows are alike
        group = at // 5
        right = bool(np.random.default_rng(group).random() < 0.5)
        features = {f"is {group}": 1.0, "noise": float(rng.normal())}
        verdict = Verdict(judge="j", score=0.5, features=features)
        rows.append(
            JudgedPrompt(
                prompt=str(at),
                group=str(group),
                split="fit",
                right={"small": right, "large": True if at % 3 else not right},
                estimate={"small": 0.5, "large": 0.7},
                verdicts={"small": verdict},
            )
        )
    found = fit_posterior(rows, ["small", "large"], ["small"], Recipe(features=50))
    assert found.chosen[SMALL]["small"] != "features"


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (World(30).rows(), "30 rows of 30 groups to fit on; it takes at least 40 rows"),
        ([replace(row, group="g") for row in World(60).rows()], "of 1 groups"),
        (World(60).rows(judged=[]), "no row has a verdict to learn from"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(rows, complaint):
    with pytest.raises(TrainingError, match=complaint):
        fit_posterior(rows, World.tiers, World.tiers)


def test_too_many_judged_tiers_are_refused():
    tiers = list("abcde")
    verdicts = {tier: Verdict(judge="j", score=0.5) for tier in tiers}
    rows = [
        JudgedPrompt(
            prompt=str(at),
            group=str(at),
            split="fit",
            right=dict.fromkeys(tiers, at % 2 == 0),
            estimate=dict.fromkeys(tiers, 0.5),
            verdicts=verdicts,
        )
        for at in range(50)
    ]
    with pytest.raises(TrainingError, match="5 tiers have verdicts, and at most 4"):
        fit_posterior(rows, tiers, tiers)
