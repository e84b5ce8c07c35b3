import math
from dataclasses import replace

import numpy as np
import pytest

from evals.choice.bounds import rows_needed
from evals.choice.goals import (
    ChoiceError,
    Goal,
    Grounds,
    best_single,
    largest_group,
    plain,
    roomy,
    shortest,
    within_budget,
)
from evals.frontier.policies import replayed
from tests.evals.choice.made import LARGE, TIERS, made

TABLE = made(2_000)
CLAIM = Goal(kind="quality", value=0.97, delta=0.1)


def grounds(name="cascade", **overrides):
    values = {
        "policy": replayed(TABLE)[name],
        "rows": TABLE.of("choose"),
        "best": 1,
        "largest": 1,
        "tested": 800,
    }
    return Grounds(**{**values, **overrides})


@pytest.mark.parametrize("policy", ["cascade", "utility"])
def test_a_budget_buys_the_best_setting_that_it_pays_for(policy):
    given = grounds(policy)
    found = within_budget(given, 0.0004)
    curve = given.policy.curve(given.rows)
    affordable = curve.cost <= 0.0004 + 1e-12
    assert found.cost <= 0.0004 + 1e-12
    assert found.quality == curve.quality[affordable].max()


def test_a_budget_that_pays_for_nothing_is_refused():
    with pytest.raises(ChoiceError, match=r"costs at least 0.0001 .* the budget is 5e-05"):
        within_budget(grounds(), 0.00005)


def test_without_room_the_cheapest_setting_that_meets_the_goal_is_taken():
    given = grounds()
    found = plain(given, CLAIM)
    curve = given.policy.curve(given.rows)
    wanted = 0.97 * given.rows.quality[:, 1].mean()
    assert found.quality >= wanted
    assert curve.quality[curve.cost < found.cost].max() < wanted


def test_more_room_costs_more():
    given = grounds()
    costs = [roomy(given, CLAIM, doubt).cost for doubt in (0.0, 1.0, 2.0)]
    assert plain(given, CLAIM).cost < costs[0] < costs[1] < costs[2]


def test_the_fewer_rows_it_is_tested_on_the_more_room_it_leaves():
    costs = [roomy(grounds(tested=count), CLAIM).cost for count in (8_000, 800, 400)]
    assert costs[0] < costs[1] < costs[2]


def test_there_may_be_no_setting_with_that_much_room():
    assert roomy(grounds(tested=30), CLAIM) is None


def test_looking_in_strides_finds_what_trying_all_settings_finds():
    given, goal = grounds(), Goal(kind="regret", value=0.03, delta=0.1)
    sweep = given.policy.sweep(given.rows)
    curve = sweep.curve()

    def enough(at):
        done = sweep.at(float(curve.knob[at]))
        margin = goal.paired(given.rows, done.quality, given.best, given.largest)
        needed = rows_needed(margin, goal.level, goal.delta, doubt=1.0)
        return needed is not None and needed <= given.tested

    cheapest = min(curve.cost[at] for at in range(len(curve)) if enough(at))
    assert len(curve) > 400
    assert roomy(given, goal).cost == pytest.approx(cheapest, rel=0.01)


def test_a_quality_that_no_setting_has_is_refused():
    perfect = np.column_stack([TABLE.quality[:, 0], np.ones(len(TABLE))])
    known = replace(TABLE, quality=perfect)
    high = Goal(kind="quality", value=1.0, delta=0.1)
    given = grounds(rows=known.of("choose"), policy=replayed(known)["doubt"])
    assert plain(given, high).quality == 1.0
    with pytest.raises(ChoiceError, match="no setting of always:small is good enough"):
        plain(replace(given, policy=replayed(known)["always:small"]), high)


def test_a_setting_is_told_in_as_few_digits_as_change_no_decision():
    rows = TABLE.of("choose")
    sweep = replayed(TABLE)["cascade"].sweep(rows)
    short = [shortest(sweep, at) for at in range(len(sweep.knob))]
    assert [sweep.place(knob) for knob in short] == list(range(len(sweep.knob)))
    assert np.median([len(f"{knob:g}") for knob in short]) <= 6


def test_the_best_single_model_is_chosen_on_rows_that_are_not_the_tests():
    quality = np.tile([0.0, 1.0], (len(TABLE), 1))
    quality[TABLE.splits == "test"] = [1.0, 0.0]
    assert TIERS[best_single(replace(TABLE, quality=quality))] == LARGE


def test_the_largest_group_counts_all_rows():
    assert largest_group(made(100, alike=4)) == 4


@pytest.mark.parametrize(
    ("kind", "value", "delta", "said"),
    [
        ("quality", 1.2, 0.1, "up to 1, not 1.2"),
        ("quality", 0.0, 0.1, "above 0"),
        ("regret", 0.0, 0.1, "regret lies between 0 and 1, not at 0"),
        ("budget", math.inf, 0.1, "number of dollars from 0, not inf"),
        ("budget", 1.0, 0.0, "probability lies between 0 and 1, not at 1"),
    ],
)
def test_a_goal_that_means_nothing_is_refused(kind, value, delta, said):
    with pytest.raises(ChoiceError, match=said):
        Goal(kind=kind, value=value, delta=delta)
