import numpy as np
import pytest

from evals.panel_calibration import calibration, line, steps
from judges.fitted import Isotonic, Platt, calibrated, sigmoid


def drawn(count, slope=1.0, offset=0.0, seed=1):
    """Log-odds, and labels that are right as often as slope and offset say."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(0, 1.5, count)
    chances = [sigmoid(slope * x + offset) for x in log_odds]
    return log_odds, rng.random(count) < chances, np.array([str(i) for i in range(count)])


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_that_are_right_already_are_left_alone(seed):
    assert calibration(*drawn(250, seed=seed)) is None


def test_boasting_is_taken_back():
    found = calibration(*drawn(250, slope=0.2))
    assert isinstance(found, Platt)
    assert 0.1 < found.slope < 0.5


def test_a_bend_is_only_told_from_many_labels():
    rng = np.random.default_rng(2)
    log_odds = rng.normal(0, 1.5, 900)
    labels = rng.random(900) < np.where(log_odds > 0.5, 0.9, 0.3)
    groups = np.array([str(i) for i in range(900)])
    assert isinstance(calibration(log_odds, labels, groups), Isotonic)
    assert not isinstance(calibration(log_odds[:200], labels[:200], groups[:200]), Isotonic)


def test_a_line_from_hardly_any_labels_stays_near_the_identity():
    found = line(np.array([-2.0, 2.0]), np.array([True, False]))
    assert found.slope > 0
    few = calibrated(found)
    many = calibrated(line(np.tile([-2.0, 2.0], 50), np.tile([True, False], 50)))
    assert abs(few(2.0) - sigmoid(2.0)) < abs(many(2.0) - sigmoid(2.0))


def test_steps_never_fall():
    found = steps(*drawn(400)[:2])
    assert list(found.y) == sorted(found.y)
