import math
import random

import pytest

from evals.escalation import ORDERS, Scored, accuracy, calibration_error, lead, recovered

FOUR = [
    # doubted, and the large model would be right
    Scored(small=0.2, large=0.9, length=10, small_right=False, large_right=True),
    # doubted most, and the large model fails as well
    Scored(small=0.1, large=0.2, length=40, small_right=False, large_right=False),
    Scored(small=0.8, large=0.9, length=20, small_right=True, large_right=True),
    # the large model would spoil it
    Scored(small=0.9, large=0.5, length=30, small_right=True, large_right=False),
]


@pytest.mark.parametrize(
    ("order", "first", "half"),
    [
        ("doubt", 0.5, 0.75),  # the hopeless one goes first and gains nothing
        ("uplift", 0.75, 0.75),
        ("oracle", 0.75, 0.75),
        ("length", 0.5, 0.25),
        ("random", 0.5, 0.5),
    ],
)
def test_what_is_left_right_depends_on_who_goes_up_first(
    order: str, first: float, half: float
) -> None:
    assert accuracy(FOUR, order, 0.0) == 0.5
    assert accuracy(FOUR, order, 0.25) == pytest.approx(first)
    assert accuracy(FOUR, order, 0.5) == pytest.approx(half)
    assert accuracy(FOUR, order, 1.0) == pytest.approx(0.5)


def test_ties_go_up_in_equal_parts_whatever_the_order_of_the_file() -> None:
    tied = [row._replace(small=0.5) for row in FOUR]
    shuffled = list(tied)
    random.Random(3).shuffle(shuffled)  # noqa: S311 - any order will do
    for share in (0.1, 0.25, 0.5, 0.8):
        assert accuracy(tied, "doubt", share) == pytest.approx(accuracy(shuffled, "doubt", share))
        assert accuracy(tied, "doubt", share) == pytest.approx(accuracy(tied, "random", share))


def test_the_gap_is_recovered_in_full_only_by_paying_for_it() -> None:
    rng = random.Random(0)  # noqa: S311 - made-up rows
    rows = [
        Scored(
            small=(p := rng.random()),
            large=0.9,
            length=rng.random(),
            small_right=rng.random() < p,
            large_right=rng.random() < 0.9,
        )
        for _ in range(600)
    ]
    areas = {order: recovered(rows, order, 0.1) for order in ("random", *ORDERS)}
    # a coin recovers what it pays for: the mean of (cost - 0.1) from 0.1 to 1
    assert areas["random"] == pytest.approx(0.9**2 / 2, abs=0.01)
    assert areas["length"] == pytest.approx(areas["random"], abs=0.1)
    assert areas["random"] < areas["doubt"] < areas["oracle"]
    assert math.isnan(recovered([row._replace(large_right=False) for row in rows], "doubt", 0.1))


def test_the_interval_of_a_lead_is_of_pairs() -> None:
    low, high = lead(FOUR * 50, "oracle", "oracle", 0.4)
    assert (low, high) == (0.0, 0.0)
    low, high = lead(FOUR * 50, "uplift", "random", 0.25)
    assert 0 < low < high


def test_calibration_error_is_the_gap_between_score_and_rate() -> None:
    sure = [0.75] * 400
    assert calibration_error(sure, [i % 4 != 0 for i in range(400)]) < 1e-9
    assert calibration_error([0.9] * 100, [False] * 100) == pytest.approx(0.9)
    assert calibration_error([0.0, 1.0] * 50, [False, True] * 50) == 0.0
