from dataclasses import replace

import numpy as np
import pytest

from evals.training.calibrate import calibration
from evals.training.fit import Recipe, apply, fit, held_out, outputs_of
from evals.training.measure import apgr
from evals.training.rows import TrainingError
from evals.training.train import train
from tests.learning import rows

CHEAP = Recipe(head="linear", components=8)


def trained(some, recipe):
    return train(some, recipe, models={}, embedding=None)


@pytest.mark.parametrize("target", ["acceptable", "difference", "uplift"])
def test_held_out_rows_that_gain_are_sent_up_first(target):
    some = rows(400)
    means, _ = held_out(some, replace(CHEAP, target=target))
    weak, strong = some.labels.T
    assert apgr(means[:, 1] - means[:, 0], weak, strong) > 0.7


@pytest.mark.parametrize("target", ["acceptable", "difference", "uplift"])
def test_held_out_probabilities_are_about_right(target):
    some = rows(400)
    means, _ = held_out(some, replace(CHEAP, target=target))
    assert means.min() >= 0.0
    assert means.max() <= 1.0
    for at in range(2):
        for half in (
            means[:, at] > np.median(means[:, at]),
            means[:, at] <= np.median(means[:, 0]),
        ):
            if half.sum() > 50:
                assert abs(means[half, at].mean() - some.labels[half, at].mean()) < 0.1


def test_nothing_to_learn_ends_in_the_prior():
    some = rows(400)
    shuffled = replace(some, labels=np.random.default_rng(1).permutation(some.labels))
    means, _ = held_out(shuffled, CHEAP)
    assert means.std(axis=0).max() < 0.1


def test_a_model_of_many_tiers_and_graded_labels():
    some = rows(200)
    graded = np.column_stack([0.2 + 0.6 * some.labels[:, 0], some.labels[:, 1], some.labels[:, 1]])
    model = fit(replace(some, labels=graded, tiers=("a", "b", "c")), CHEAP)
    means, _ = apply(model, some)
    assert means.shape == (200, 3)
    assert abs(means[:, 0].mean() - graded[:, 0].mean()) < 0.05


def test_labels_that_are_missing_are_left_out():
    some = rows(400)
    labels = some.labels.copy()
    labels[::2, 0], labels[1::2, 1] = np.nan, np.nan
    model = fit(replace(some, labels=labels), CHEAP)
    assert np.isfinite(apply(model, some)[0]).all()
    np.testing.assert_allclose(model.prior, np.nanmean(labels, axis=0))


def test_an_uplift_needs_rows_where_both_are_known():
    labels = np.array([[1.0, np.nan], [np.nan, 0.0]])
    with pytest.raises(TrainingError, match='use the target "difference"'):
        outputs_of(labels, "uplift")


def test_few_rows_are_refused_with_what_it_takes():
    with pytest.raises(TrainingError, match=r"tier small: 30 labels.*at least 40"):
        fit(rows(30), CHEAP)


def test_a_tier_that_is_nearly_always_right_is_refused():
    some = rows(100)
    labels = some.labels.copy()
    labels[:, 1] = 1.0
    with pytest.raises(TrainingError, match="tier large: 100 labels, 100 of them right"):
        fit(replace(some, labels=labels), CHEAP)


def test_neither_embeddings_nor_features_is_nothing_to_learn_from():
    with pytest.raises(TrainingError, match="nothing to learn from"):
        fit(rows(100, embedded=False), replace(CHEAP, features=False))


def test_about_the_stated_share_of_the_training_rows_is_inside():
    some = rows(400)
    model = fit(some, replace(CHEAP, inside=0.9))
    fresh = rows(400, seed=3)
    out = model.domain(fresh.embeddings, fresh.features)
    assert 0.0 < out.mean() < 0.2


def test_what_has_another_form_is_out_of_the_domain_though_it_means_the_same():
    some = rows(200)
    model = fit(some, CHEAP)
    shouting = [{**found, "log_choices": 3.0, "log_quotes": 3.0} for found in some.features]
    assert model.domain(some.embeddings, shouting).mean() > 0.95


def test_what_means_something_else_is_out_of_the_domain_though_it_has_the_same_form():
    some = rows(200)
    model = fit(some, CHEAP)
    assert model.domain(-some.embeddings, some.features).mean() > 0.95


def test_the_check_can_be_switched_off():
    assert fit(rows(100), replace(CHEAP, inside=1.0)).domain is None


def test_a_tag_is_a_feature_that_others_lack():
    some = rows(200)
    tagged = [
        {**found, "tag.team=search": 1.0} if at % 2 else dict(found)
        for at, found in enumerate(some.features)
    ]
    model = fit(replace(some, features=tagged, embeddings=None), CHEAP)
    assert "tag.team=search" in model.inputs.names
    with_tag, _ = model(None, [tagged[1]])
    without, _ = model(None, [{k: v for k, v in tagged[1].items() if k != "tag.team=search"}])
    assert with_tag[0, 0] < without[0, 0]  # odd rows are the hard ones


def test_the_digest_knows_labels_features_and_embeddings_apart():
    some = rows(50)
    others = [
        replace(some, labels=1.0 - some.labels),
        replace(some, features=[{**f, "code": 1.0} for f in some.features]),
        replace(some, embeddings=-some.embeddings),
    ]
    assert len({each.digest() for each in (some, *others)}) == 4
    assert rows(50).digest() == some.digest()


def grouped(some, *names):
    """The rows in as many groups, one after the other."""
    return replace(some, groups=np.resize(names, len(some)))


def only_wrong_in(some, group):
    """The large tier fails in that group and nowhere else."""
    labels = some.labels.copy()
    labels[:, 1] = some.groups != group
    return replace(some, labels=labels)


def test_rows_of_one_group_are_refused_with_what_it_takes():
    with pytest.raises(TrainingError, match="the 100 rows are of one group"):
        fit(grouped(rows(100), "a"), CHEAP)


@pytest.mark.parametrize("head", ["linear", "boosted"])
def test_a_fold_that_leaves_only_right_answers_is_refused_with_what_it_takes(head):
    some = only_wrong_in(grouped(rows(100), "a", "b", "c", "d"), "a")
    with pytest.raises(TrainingError, match="are all right: right and wrong ones must be in sev"):
        fit(some, replace(CHEAP, head=head, target="acceptable"))


def test_a_fold_that_leaves_a_tier_without_labels_is_named():
    some = grouped(rows(200), "a", "b", "c", "d")
    labels = some.labels.copy()
    labels[:, 1] = np.where(some.groups == "a", np.arange(200) % 8 > 0, np.nan)
    with pytest.raises(
        TrainingError, match=r"without fold \d of 4.*tier large: no row has a label"
    ):
        fit(replace(some, labels=labels), replace(CHEAP, head="forest"))


@pytest.mark.parametrize("measure", [held_out, trained])
def test_what_is_too_little_without_a_fold_says_that_it_is_of_a_fold(measure):
    with pytest.raises(TrainingError, match=r"without fold 1 of 5, which is held back: tier small"):
        measure(rows(45), CHEAP)


def test_every_fifth_row_may_be_a_wrong_one():
    labels = (np.arange(400) % 5 > 0).astype(float)
    values = np.random.default_rng(0).random(400)
    assert calibration(values, labels)(np.array([0.5]))[0] == pytest.approx(0.8, abs=0.1)
