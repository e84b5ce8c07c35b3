"""Kinks of upper envelopes, which brute force finds as well."""

import numpy as np
import pytest

from evals.frontier.outlook import Choices, Worth
from evals.frontier.pieces import pieces

RNG = np.random.default_rng(0)


def envelopes(lines):
    """Evaluates the best of some lines, of shape (places, lines, 2): quality and cost."""
    quality, cost = lines[..., 0], lines[..., 1]

    def best(place, mu):
        call = (quality[place] - mu[:, None] * cost[place]).argmax(axis=1)
        return Choices(call, Worth(quality[place, call], cost[place, call]))

    return best


@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_every_piece_has_the_best_line_and_together_they_are_the_interval(count):
    lines = RNG.random((50, count, 2))
    found = pieces(envelopes(lines), np.zeros(50), np.full(50, 20.0))
    for place in range(50):
        mine = found.take(found.row == place)
        order = np.argsort(mine.low)
        low, high, call = mine.low[order], mine.high[order], mine.best.call[order]
        assert low[0] == 0.0
        assert high[-1] == 20.0
        np.testing.assert_array_equal(low[1:], high[:-1])
        for start, end, line in zip(low, high, call, strict=True):
            for mu in (start + (end - start) * share for share in (0.01, 0.5, 0.99)):
                values = lines[place, :, 0] - mu * lines[place, :, 1]
                assert values[line] == pytest.approx(values.max())


def test_a_line_that_is_best_nowhere_has_no_piece():
    lines = np.array([[[1.0, 1.0], [0.5, 0.5], [0.0, 0.0], [0.4, 0.6]]])
    found = pieces(envelopes(lines), np.zeros(1), np.full(1, 9.0))
    assert sorted(found.best.call.tolist()) == [0, 2]
    assert sorted(found.low.tolist()) == [0.0, 1.0]
