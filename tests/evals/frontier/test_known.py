from dataclasses import replace

import numpy as np
import pytest

from evals.frontier.known import FrontierError, complete, learn
from evals.frontier.policies import replayed
from tests.evals.frontier.worlds import world
from tests.evals.tables.tables import table


def test_nothing_is_learned_from_rows_that_are_chosen_or_tested_on():
    some = world(90)
    other = some.take(np.arange(90))
    apart = other.splits != "fit"
    other.quality[apart], other.cost[apart] = 1.0 - other.quality[apart], 7.0
    one, two = learn(some), learn(other)
    np.testing.assert_array_equal(one.rates, two.rates)
    np.testing.assert_array_equal(one.kind_rates, two.kind_rates)
    assert one.lines == two.lines


def test_a_call_is_quoted_by_the_length_of_its_prompt_where_that_says_something():
    prompts = ["x" * size for size in (10, 20, 30, 40)]
    cost = [[0.1 + 0.01 * len(prompt), 5.0] for prompt in prompts]
    known = learn(table([[0, 1]] * 4, cost=cost, prompts=prompts, splits=["fit"] * 4))
    some = table([[0, 1]], cost=[[9.0, 9.0]], prompts=["x" * 100])
    np.testing.assert_allclose(known.quotes(some), [[1.1, 5.0]])


def test_longer_is_never_quoted_cheaper():
    prompts = ["x", "xx", "xxx"]
    cost = [[3.0, 1.0], [2.0, 1.0], [1.0, 1.0]]
    known = learn(table([[0, 1]] * 3, cost=cost, prompts=prompts, splits=["fit"] * 3))
    assert known.lines[0].slope == 0.0
    assert known.lines[0].at == pytest.approx(2.0)


def test_the_strong_tier_is_the_best_that_is_not_the_cheapest():
    known = learn(
        table([[1, 0, 1], [1, 0, 0]], tiers=("a", "b", "c"), cost=1.0, splits=["fit"] * 2)
    )
    assert (known.best, known.strong) == (0, 2)


def test_rows_without_every_tier_are_left_out():
    some = table([[1, 0], [1, np.nan], [0, 1]], cost=[[1, 2], [1, 2], [np.nan, 2]])
    assert complete(some).ids.tolist() == ["1"]


def test_a_verdict_of_unknown_cost_is_not_free():
    some = table([[1, 0], [0, 1]], cost=1.0, judged=0.5, judge_cost=[[np.nan, 0], [0.1, 0]])
    assert complete(some).ids.tolist() == ["2"]
    with pytest.raises(FrontierError, match="nothing says what judging them costs"):
        complete(table([[1, 0]], cost=1.0, judged=0.5, judge_cost=np.nan))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"cost": [[1.0, np.nan]]}, r"what an answer of large costs: .*--price large=DOLLARS"),
        ({"cost": 1.0, "splits": ["test", "choose"]}, "made-up: there are no fit rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_says_what_is_missing(columns, said):
    with pytest.raises(FrontierError, match=said):
        learn(table([[1, 0], [0, 1]], **{"splits": ["fit", "fit"], **columns}))


def test_without_kinds_groups_that_come_up_again_are_looked_up():
    twice = table(
        [[0, 1], [1, 1], [0, 1], [1, 0]],
        cost=1.0,
        groups=["a", "b", "a", "b"],
        splits=["fit", "fit", "test", "test"],
    )
    found = replayed(twice)
    np.testing.assert_allclose(found.known.by_kind(twice.of("test")), [[0, 1], [1, 1]])
    assert "kind" in found.policies
    apart = replace(twice, groups=np.array(["a", "b", "c", "d"]))
    assert replayed(apart).missing["kind"] == "all rows are of one kind, or of none"


def test_rows_of_which_nobody_says_what_judging_costs_are_left_out():
    some = table([[0, 1]] * 3, cost=1.0, judge_cost=[[0.1, 0], [np.nan, 0], [0.2, 0]])
    assert complete(some).ids.tolist() == ["1", "3"]
    with pytest.raises(FrontierError, match="nothing says what judging them costs"):
        complete(some.take(np.array([1])))


def test_one_tier_alone_is_refused():
    with pytest.raises(FrontierError, match="only the tier small"):
        complete(table([[1.0]], tiers=("small",), cost=1.0))
