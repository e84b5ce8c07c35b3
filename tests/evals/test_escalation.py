import math
import random

import pytest

from evals.escalation import (
    ORDERS,
    Scored,
    accuracy,
    calibration_error,
    calibration_noise,
    lead,
    recovered,
)

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


def test_perfect_scores_show_some_error_on_few_rows_and_less_on_many() -> None:
    rng = random.Random(5)  # noqa: S311 - made-up scores
    few, many = ([rng.random() for _ in range(count)] for count in (100, 4_000))
    usual, most = calibration_noise(few, draws=200)
    assert 0.04 < usual < most < 0.2
    assert calibration_noise(many, draws=50)[0] < usual / 3
    right = [rng.random() < score for score in few]
    assert calibration_error(few, right) < 1.5 * most


def test_rows_of_a_group_are_drawn_together() -> None:
    alike = [row._replace(group=str(at)) for at, row in enumerate(FOUR) for _ in range(50)]
    low, high = lead(alike, "uplift", "doubt", 0.25)
    free_low, free_high = lead([row._replace(group="") for row in alike], "uplift", "doubt", 0.25)
    assert high - low > 2 * (free_high - free_low)
