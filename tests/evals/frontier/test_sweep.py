"""Settings and the knobs that stand for them."""

import numpy as np
import pytest

from evals.frontier.sweep import Paths, swept
from tests.evals.tables.tables import table


def sweep(keys, setting, *, falling):
    """Rows that each go up once, from a free answer that is wrong to a right one for a dollar."""
    rows = len(keys)
    some = table([[0.0, 1.0]] * rows, cost=[[0.0, 1.0]])
    paths = Paths(
        served=np.zeros(rows, dtype=np.int8),
        cost=some.cost[:, 0],
        row=np.arange(rows, dtype=np.int32),
        key=-np.array(keys) if falling else np.array(keys),
        after=np.ones(rows, dtype=np.int8),
        after_cost=some.cost[:, 1],
    )
    return swept(some, paths, setting, falling=falling)


def up(found, knob):
    return int(found.at(knob).served.sum())


def test_a_score_that_reaches_a_falling_knob_has_changed():
    found = sweep([0.2, 0.9, 0.9, 0.4], "reached", falling=True)
    assert found.knob.tolist() == [np.inf, 0.9, 0.4, 0.2]
    assert [up(found, knob) for knob in (1.0, 0.9, 0.5, 0.4, 0.0)] == [0, 2, 2, 3, 4]


def test_a_score_that_a_rising_knob_has_passed_has_changed():
    found = sweep([0.2, 0.9, 0.9, 0.4], "passed", falling=False)
    assert found.knob.tolist() == [0.2, 0.4, 0.9, np.inf]
    assert [up(found, knob) for knob in (0.0, 0.2, 0.3, 0.9, 1.0)] == [0, 0, 1, 2, 4]


@pytest.mark.parametrize("falling", [True, False])
@pytest.mark.parametrize("keys", [[1.0, 2.0, 4.0], [-1.0, 2.0], [-3.0, -1.0], [0.0, 1.0], [5.0]])
def test_a_knob_between_two_keys_has_their_setting(keys, falling):
    found = sweep(keys, "between", falling=falling)
    assert [up(found, knob) for knob in found.knob] == list(range(len(keys) + 1))
    order = np.diff(found.knob)
    assert (order < 0.0).all() if falling else (order > 0.0).all()


def test_the_knob_between_a_key_below_0_and_one_above_is_above():
    assert sweep([-3.0, 1.0], "between", falling=True).knob.tolist() == [2.0, 0.5, -6.0]


def test_computed_keys_that_rounding_alone_tells_apart_are_one_setting():
    found = sweep([0.1 + 0.2, 0.3, 0.5], "between", falling=False)
    assert len(found.knob) == 3


def test_a_curve_adds_up_what_changes():
    curve = sweep([0.2, 0.9, 0.9, 0.4], "passed", falling=False).curve()
    np.testing.assert_allclose(curve.cost, [0.0, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(curve.quality, curve.cost)
    np.testing.assert_allclose(curve.shares, np.column_stack([1.0 - curve.cost, curve.cost]))
