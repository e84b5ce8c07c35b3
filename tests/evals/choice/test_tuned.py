from dataclasses import replace

import numpy as np
import pytest

from benchmarks.tuned import tally, truth
from evals.choice.goals import ChoiceError, Goal
from evals.choice.tuned import tune
from evals.frontier.known import FrontierError
from tests.evals.choice.made import made

CLAIM = Goal(kind="quality", value=0.95, delta=0.1)
TRUE = truth(made(100_000, seed=999))


@pytest.mark.parametrize("candidates", [1, 6])
def test_without_a_bound_half_of_the_settings_miss_and_with_it_at_most_a_tenth(candidates):
    tables = [made(1_000, seed) for seed in range(60)]
    found = tally([tune(each, "cascade", CLAIM, candidates=candidates) for each in tables], TRUE)
    assert 1 / 3 <= found.missed <= 2 / 3
    assert found.wrong <= 0.1
    assert found.certified >= 2 / 3


def test_the_rows_it_is_tested_on_choose_nothing():
    table = made(1_000)
    quality = np.where((table.splits == "test")[:, None], 1.0 - table.quality, table.quality)
    found = tune(table, "utility", CLAIM)
    turned = tune(replace(table, quality=quality), "utility", CLAIM)
    assert turned.chosen == found.chosen
    assert turned.best == found.best
    assert found.claim.met
    assert not turned.claim.met


def test_with_several_candidates_the_test_rows_say_how_far_to_go():
    table = made(1_000, seed=4)
    strict = tune(table, "cascade", CLAIM)
    far = tune(table, "cascade", CLAIM, candidates=8)
    assert far.claim.met
    assert far.chosen.cost < strict.chosen.cost
    assert far.claim.tried > 1
    # of a setting that the test rows had a say in, only the goal is certified
    assert far.claim.quality is None
    assert far.claim.share is None


def test_a_budget_has_a_bound_on_the_quality_that_it_buys():
    found = tune(made(1_000), "cascade", Goal(kind="budget", value=0.0004, delta=0.1))
    assert found.chosen.cost <= 0.0004
    assert 0.8 < found.claim.quality < found.tested.quality.value
    assert found.just is None


def test_too_few_rows_are_told_how_many_would_do():
    found = tune(made(250, seed=1), "cascade", Goal(kind="quality", value=0.98, delta=0.1))
    assert not found.claim.met
    assert found.claim.needed > found.tested.rows


def test_alike_rows_carry_less_than_as_many_that_are_not():
    table = made(2_000, alike=10)
    alike = tune(table, "cascade", CLAIM)
    alone = tune(replace(table, groups=table.ids), "cascade", CLAIM)
    assert alike.just == alone.just
    assert alike.chosen.cost > alone.chosen.cost


def test_what_it_comes_to_on_the_test_rows_adds_up():
    table = made(1_000)
    found = tune(table, "cascade", CLAIM).tested
    paid = 0.0001 + 0.001 * found.shares[1]
    assert found.rows == 400
    assert found.cost.value == pytest.approx(paid)
    assert sum(found.shares) == pytest.approx(1.0)
    assert found.share.value == pytest.approx(found.quality.value / found.other_quality)


def test_rows_that_cannot_be_played_are_left_out():
    table = made(1_000)
    quality = table.quality.copy()
    quality[:10, 1] = np.nan
    assert tune(replace(table, quality=quality), "cascade", CLAIM).tested.rows == 396


@pytest.mark.parametrize(("part", "use"), [("choose", "choose"), ("test", "test")])
def test_a_table_without_one_of_the_parts_is_refused(part, use):
    table = made(500)
    rest = table.take(table.splits != part)
    with pytest.raises(ChoiceError, match=f"no rows to {use} on"):
        tune(rest, "cascade", CLAIM)


def test_what_is_only_there_to_be_compared_with_is_not_tuned():
    with pytest.raises(ChoiceError, match="oracle is there to be compared with"):
        tune(made(500), "oracle", CLAIM)
    with pytest.raises(FrontierError, match="no policy 'best'"):
        tune(made(500), "best", CLAIM)
