"""Published figures of a router's metrics, on the rows that they can be had for."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evals.frontier.figures import gaps
from evals.frontier.known import learn
from evals.frontier.metrics import apgr, cpt
from evals.frontier.policies import replayed
from evals.tables import columns, load
from evals.tables.prices import stated

DATA = Path(os.environ.get("CASCADE_DATA") or Path(__file__).parents[4] / "shared" / "data")
MMLU = DATA / "routellm_mmlu.jsonl.gz"

pytestmark = pytest.mark.skipif(
    not MMLU.exists(), reason=f"{MMLU} is not there; CASCADE_DATA names its folder"
)


@pytest.fixture(scope="module")
def mmlu():
    mapping = columns(["small=weak", "large=strong", "kind=subject"])
    return load(MMLU, mapping, prices=stated(["small=1", "large=20"]))


def metrics(table, name, steps=None):
    """APGR and CPT80 of a policy on all rows."""
    curve = replayed(table)[name].curve(table)
    means = [each.mean(axis=0).tolist() for each in (table.cost, table.quality)]
    pair, _ = gaps(*means, learn(table))
    shares = curve.shares[:, 1]
    return (
        apgr(shares, curve.quality, pair, steps=steps),
        *cpt(shares, curve.quality, pair, [0.8]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_random_scores_win_back_half_of_the_gap_and_four_fifths_with_four_fifths(mmlu, seed):
    drawn = np.random.default_rng(seed).random((len(mmlu), 2))
    half, most = metrics(replace(mmlu, predicted=drawn), "uplift")
    assert half == pytest.approx(0.5, abs=0.02)
    assert most == pytest.approx(0.8, abs=0.05)


def test_the_random_mix_is_exactly_that(mmlu):
    assert metrics(mmlu, "random") == pytest.approx((0.5, 0.8))


def test_the_oracle_on_these_rows_at_every_setting_and_in_tenths(mmlu):
    weak, strong = mmlu.quality.T
    up, level, gain = (strong > weak).mean(), (strong == weak).mean(), (strong - weak).mean()
    area = up * up / 2 + level * up + (1.0 - up - level) * (up + gain) / 2
    assert metrics(mmlu, "oracle")[0] == pytest.approx(area / gain)
    assert metrics(mmlu, "oracle")[0] == pytest.approx(1.300, abs=0.0005)
    assert metrics(mmlu, "oracle", steps=10)[0] == pytest.approx(1.279, abs=0.0005)


def test_the_length_of_the_prompt_is_a_baseline(mmlu):
    assert metrics(mmlu, "length")[0] == pytest.approx(0.560, abs=0.001)
