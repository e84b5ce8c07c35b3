"""The page on results: its example works, and its numbers keep what it promises."""

import re
from pathlib import Path

import pytest
import yaml

from evals.commands.simulate_experiments import BEGIN, END
from serving.experiment_config import Experiment
from serving.results.guardrails import COST, ERRORS, LATENCY, QUALITY
from serving.results.sequences import ALPHA, LEAST_UNITS

PAGE = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
MEASURED = PAGE.partition(BEGIN)[2].partition(END)[0]


def tables():
    found = []
    for block in MEASURED.strip().split("\n\n"):
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines()]
        if block.startswith("|"):
            found.append([dict(zip(rows[0], row, strict=True)) for row in rows[2:]])
    return found


def share(cell):
    return float(cell.removesuffix("%")) / 100


def test_the_example_can_work():
    example = yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])
    (entry,) = example["experiments"].values()
    Experiment.model_validate(entry)


def test_every_guardrail_is_explained():
    assert all(f"| `{name}` |" in PAGE for name in (QUALITY, COST, ERRORS, LATENCY))


def test_a_thousand_experiments_of_a_kind_gave_few_false_alarms():
    assert "1,000 experiments of each kind" in MEASURED
    alarms, _, _ = tables()
    assert {row["compared"] for row in alarms} >= {"quality", "cost", "shares of the arms"}
    for row in alarms:
        assert share(row["false alarms"]) <= ALPHA
    looked_at_once = [
        share(row[name]) for row in alarms if row[name := "with an interval for one look"]
    ]
    assert min(looked_at_once) > 3 * ALPHA


def test_the_power_for_three_points_is_stated_and_grows_with_traffic():
    _, power, _ = tables()
    found = [share(row["seen by day 30"]) for row in power]
    assert found == sorted(found)
    assert found[-1] > 0.9


def test_a_guardrail_spares_an_arm_at_its_bound_and_stops_a_bad_one():
    _, _, stops = tables()
    found = {row["worse by"]: share(row["turned off by day 30"]) for row in stops}
    assert max(found["1 point"], found["2 points"]) <= ALPHA
    assert found["10 points"] > 0.95


@pytest.mark.parametrize("stated", [f"fewer than {LEAST_UNITS} units", "narrowest at 2,000 units"])
def test_the_numbers_in_the_text_are_those_of_the_code(stated):
    assert stated in " ".join(PAGE.split())
