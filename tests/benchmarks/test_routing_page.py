import re

import pytest

from benchmarks.routing_quality.page import tables
from benchmarks.routing_quality.scores import COLUMNS
from benchmarks.routing_quality.sections import SECTIONS, jobs


def record(section, seed, apgr, **more):
    values = dict.fromkeys(COLUMNS, 0.25) | {"apgr": apgr}
    job = {"section": section, "table": "mmlu", "head": "blend", "target": "difference"}
    return job | {"n": 1_000, "seed": seed, "tested": ""} | values | more


def test_seeds_become_their_mean_and_how_far_the_furthest_is_from_it():
    text = tables([record("mmlu", 0, 0.61), record("mmlu", 1, 0.63)])
    assert "0.620 ±0.010" in text
    assert "| 1,000 |" in text


def test_the_interval_and_the_lead_over_length_are_printed_where_they_are_known():
    text = tables([record("mmlu", 0, 0.6, interval=[0.58, 0.62], lead=[0.01, 0.05])])
    assert "0.580 to 0.620" in text
    assert "+0.010 to +0.050" in text


def test_a_transfer_names_both_tables():
    text = tables([record("transfer", 0, 0.5, tested="gsm8k")])
    assert "mmlu to gsm8k | 1,000 |" in text


def test_nine_models_have_three_columns_a_price():
    values = {"score": 0.6, "cost": 0.5, "closed": 0.2}
    some = {"section": "nine", "table": "nine", "head": "forest", "target": "difference"}
    text = tables([some | {"prices": {"0.0": values, "0.2": values}}])
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in text.split("\n") if "|" in line}
    assert widths == {9}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_has_jobs_of_every_seed(section):
    made = jobs([section], 2)
    assert {job.seed for job in made} == {0, 1}
    assert {job.section for job in made} == {section}
