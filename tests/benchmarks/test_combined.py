"""The benchmark's own parts: curves and areas by hand, and one small table through all of it."""

import numpy as np
import pytest

from benchmarks.combined.page import record, tables
from benchmarks.combined.routed import (
    ALONE,
    BOTH,
    STRAIGHT,
    WAYS,
    areas,
    by_doubt,
    by_gain,
    combined,
    drawn,
    pre_call,
)
from benchmarks.combined.told import Told, told
from evals.text_judging import AnswerPair
from evals.training.fit import Recipe
from tests.learning import rows as made_rows

LABELS = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])


def area(routes, ratio, labels=LABELS):
    return float(areas(np.array(routes, dtype=np.int8), labels, ratio, np.ones((1, 4)))[0])


def said(**overrides):
    even = np.full((4, 2), 0.5)
    values = dict.fromkeys(("estimate", "verdict", "before", "moves", "after"), even)
    return Told(**{"labels": LABELS, **values, **overrides})


def columns(*weak_and_strong):
    return np.array(weak_and_strong, dtype=float).T


def test_a_random_order_before_the_call_wins_back_a_half():
    # all alike: nobody goes up, or everybody; the line between the two
    assert area([[ALONE, STRAIGHT]] * 4, 0.3) == pytest.approx(0.5)


def test_a_perfect_order_before_the_call_is_a_triangle_and_a_plateau():
    routes = [[0, 1, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]
    # with the ratio 0 all is won back at half of the cost
    assert area(routes, 0.0) == pytest.approx(0.75)


def test_what_goes_up_after_a_call_has_paid_for_both():
    # half of the rows go up, for 0.5 + 0.5: at cost 1 all is won back, in a line from the ratio
    assert area([[ALONE, BOTH], [ALONE, ALONE], [ALONE, BOTH], [ALONE, ALONE]], 0.5) == 0.5
    # all go up, for 1.5: what lies beyond 1 does not count
    assert area([[ALONE, BOTH]] * 4, 0.5) == pytest.approx(0.25)


def test_beyond_the_dearest_setting_nothing_more_is_bought():
    routes = [[ALONE, STRAIGHT], [ALONE, ALONE], [ALONE, ALONE], [ALONE, ALONE]]
    # half of the gap at a quarter of the cost, and no more
    assert area(routes, 0.0) == pytest.approx(0.5 * 0.25 / 2.0 + 0.5 * 0.75)


def test_where_the_strong_model_is_no_better_there_is_no_area():
    assert np.isnan(area([[ALONE, STRAIGHT]] * 4, 0.1, LABELS[:, ::-1]))


def test_each_way_sends_up_by_its_own_word():
    estimate = columns([0.9, 0.8, 0.2, 0.7], [0.9, 0.9, 0.9, 0.7])
    assert pre_call(said(estimate=estimate), 0.1)[:, 1].tolist() == [0, 0, STRAIGHT, 0]
    verdict = columns([0.9, 0.1, 0.3, 0.7], [0.9, 0.2, 0.9, 0.7])
    assert by_doubt(said(verdict=verdict), 0.1)[:, 1].tolist() == [0, BOTH, 0, 0]
    assert by_gain(said(verdict=verdict), 0.1)[:, 1].tolist() == [0, 0, BOTH, 0]


def test_the_utility_rule_goes_straight_up_or_looks_first():
    before = columns([0.05, 0.6, 0.6, 0.99], [0.9, 0.9, 0.9, 0.99])
    moves = columns([0.02, 0.15, 0.15, 0.001], [0.0] * 4)
    verdict = columns([0.05, 0.1, 0.95, 0.99], [0.9] * 4)
    after = columns([0.05, 0.1, 0.95, 0.99], [0.9, 0.9, 0.97, 0.99])
    found = combined(said(before=before, moves=moves, verdict=verdict, after=after), 0.25)
    ways = [set(row.tolist()) for row in found]
    assert STRAIGHT in ways[0]
    assert BOTH in ways[1]
    # a right answer is worth nothing at first: nobody is sent up
    assert set(found[:, 0].tolist()) == {ALONE}


def test_draws_are_of_whole_groups():
    weights = drawn(np.array(["a", "a", "b", "c"]))
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 1:].sum(axis=1) == 3).all()


@pytest.fixture(scope="module")
def small():
    rows = made_rows(260, 1)
    pairs = [
        AnswerPair(
            prompt=f"What is {at} + 2?",
            gold=float(at + 2),
            weak=bool(weak),
            strong=bool(strong),
            weak_text=f"{at} + 2 = {at + 2 if weak else at + 3}\n#### {at + 2 if weak else at + 3}",
            strong_text=str(at + 2),
        )
        for at, (weak, strong) in enumerate(rows.labels)
    ]
    recipe = Recipe(head="linear", folds=2, inside=1.0)
    return rows, told(rows, pairs, seed=0, head=recipe, kind="logistic", parts=2)


def test_every_row_is_told_something_and_the_sums_are_checked(small):
    rows, found = small
    for name in ("estimate", "verdict", "before", "after"):
        values = getattr(found, name)
        assert ((values >= 0.0) & (values <= 1.0)).all(), name
    right = rows.labels[:, 0] == 1.0
    assert found.verdict[right, 0].mean() > found.verdict[~right, 0].mean() + 0.3


def test_the_page_has_each_way_and_what_combining_adds(small):
    rows, found = small
    first = record("graded", 0, rows, found)
    text = tables([first, {**first, "seed": 1}])
    assert text.startswith("As graded in the source (n = 260, weak")
    assert all(f"| {name} |" in text for name in WAYS)
    assert "| *combined over the best of the others* |" in text
    assert "nan" not in text
