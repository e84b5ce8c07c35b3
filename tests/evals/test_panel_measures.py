import pytest

from evals.escalation import Scored
from evals.panel_fit import JudgedRow
from evals.panel_measures import at_threshold, measured, scored, threshold
from judges.fitted import Artifact, model_of

TIERS = ("small", "large")


def row(number, score, small, large, length=10.0):
    return JudgedRow(
        prompt=str(number),
        kind="k",
        group=f"g{number // 2}",
        split="test",
        features={"j.x": score, "j.score": score},
        right={"small": small, "large": large},
        length=length,
    )


def model():
    """Takes the feature for the log-odds."""
    manifest = {
        "judged": "small",
        "models": {},
        "members": {},
        "data": "",
        "rows": {},
        "fitted_at": "",
    }
    heads = {
        "small": {"weights": [1.0]},
        "large": {"intercept": 0.5, "if_right": {"intercept": 3.0}},
    }
    features = [{"name": "j.x", "mean": 0.0, "scale": 1.0}]
    return model_of(
        Artifact.model_validate(
            {"kind": "panel_model", "manifest": manifest, "features": features, "heads": heads}
        )
    )


ROWS = [
    row(number, score, small=number >= 20, large=number % 4 != 0, length=40.0 - number)
    for number, score in enumerate(step / 10 - 2 for step in range(40))
]


def test_a_panel_is_measured_against_what_it_must_beat():
    metrics = measured(model(), ROWS, ROWS)
    assert (metrics["n"], metrics["groups"]) == (40, 20)
    assert metrics["right"] == {"small": 0.5, "large": 0.75}
    assert metrics["auc"] == [1.0, 1.0, 1.0]
    assert metrics["auc_of_members"]["j"] == {"n": 40, "auc": [1.0, 1.0, 1.0]}
    assert metrics["calibration_error"] == metrics["calibration_error_before"]
    assert metrics["accuracy"]["doubt"] == metrics["accuracy"]["uplift"]
    assert metrics["accuracy"]["random"][1][0] == pytest.approx(0.6)
    assert metrics["uplift_over"]["doubt"] == [[0.0, 0.0]] * 3
    value, low, high = metrics["accuracy"]["doubt"][1]
    assert low < value < high
    usual, most = metrics["calibration_noise"]
    assert 0 < usual < most


def test_which_way_length_counts_is_learned_from_the_rows_of_the_fit():
    """Here short answers are right; on the rows of the fit, in the second case, long ones were."""
    assert measured(model(), ROWS, ROWS)["auc_length_only"][0] == 1.0
    turned = [row(n, 0.0, small=n >= 20, large=True, length=float(n)) for n in range(40)]
    assert measured(model(), ROWS, turned)["auc_length_only"][0] == 0.0
    assert scored(model(), ROWS, turned)[0].length == -40.0


def test_the_threshold_leads_a_coin_by_most():
    held_out = [0.1] * 10 + [0.5] * 10 + [0.9] * 20
    rows = [row(n, 0.0, small=n >= 20, large=n >= 10) for n in range(40)]
    # the first ten are hopeless; the next ten are mended
    assert threshold(held_out, rows, TIERS) == 0.55
    mended = [row(n, 0.0, small=n >= 10, large=True) for n in range(40)]
    assert threshold(held_out, mended, TIERS) == 0.15


def test_a_ladder_is_measured_at_its_threshold():
    scores = [
        Scored(small=0.2, large=0.9, length=1, small_right=False, large_right=True),
        Scored(small=0.8, large=0.9, length=1, small_right=True, large_right=True),
    ] * 10
    found = at_threshold(scores, 0.5)
    assert (found["accept_at"], found["sent_up"], found["right"][0]) == (0.5, 0.5, 1.0)
    assert found["over_random"][0] == 0.25
