"""The benchmark's own jobs on tables of made-up prompts that take seconds."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.routing_quality.page import tables as tables_of
from benchmarks.routing_quality.scores import COLUMNS
from benchmarks.routing_quality.sections import FEW, SECTIONS, Job, baselines, run
from benchmarks.routing_quality.tables import DataError, Tables, load
from tests.learning import prompts, rows


def made(count, seed):
    """Rows whose kind is the verb that the prompt begins with."""
    texts, _ = prompts(count, seed)
    kinds = np.array([text.split()[0] for text in texts])
    return replace(rows(count, seed), kinds=kinds)


def of_nine(count):
    labels = np.random.default_rng(2).random((count, 3)).round(2)
    return replace(made(count, 2), tiers=("a-1b", "b-7b", "c-70b"), labels=labels)


@pytest.fixture(scope="module")
def tables():
    return Tables(mmlu=made(240, 0), gsm8k=made(120, 1), regraded=made(120, 3), nine=of_nine(90))


def job(section, table="mmlu", **fields):
    given = {"head": "linear", "target": "difference", "seed": 0}
    return Job(section=section, table=table, **{**given, **fields})


JOBS = [
    job("mmlu"),
    job("without", without="shape"),
    job("without", without="embedding"),
    job("unseen"),
    job("transfer", "regraded", tested="gsm8k"),
    job("gsm8k", "gsm8k"),
]


@pytest.mark.parametrize("each", JOBS, ids=lambda each: f"{each.section} {each.without}".strip())
def test_a_job_finds_what_is_there_to_be_found(tables, each):
    found = run(each, tables)
    assert found["n"] == (120 if each.section in ("transfer", "gsm8k") else 240)
    assert found.keys() >= {"section", "table", "seed", *COLUMNS}
    assert found["apgr"] > 0.55
    assert found["auc_weak_wrong"] > 0.6


def test_few_labels_are_measured_on_all_other_rows(tables):
    assert run(job("few"), replace(tables, mmlu=made(FEW + 40, 0)))["n"] == 40


def test_many_models_have_a_score_a_cost_and_a_gap_at_every_price(tables):
    found = run(job("nine", "nine", head="topics"), tables)
    assert list(found["prices"]) == ["0.0", "0.05", "0.2"]
    for each in found["prices"].values():
        assert each.keys() == {"score", "cost", "closed"}
    costs = [each["cost"] for each in found["prices"].values()]
    assert costs == sorted(costs, reverse=True)
    assert found["interval"][0] <= found["prices"]["0.0"]["closed"] <= found["interval"][1]


def test_what_needs_no_model_is_there_for_every_table_that_is_printed(tables):
    found = baselines(tables, SECTIONS)
    told = {(each["table"], each["head"]): each for each in found}
    for table in ("mmlu", "gsm8k", "regraded"):
        assert told[table, "random"]["apgr"] == pytest.approx(0.5)
        assert told[table, "oracle"]["apgr"] > told[table, "length"]["apgr"]
    assert told["mmlu", "table of true kinds, held out"]["apgr"] > 0.6
    assert told["nine", "oracle"]["prices"]["0.0"]["closed"] == pytest.approx(1.0)


def test_all_of_it_becomes_a_page(tables):
    records = [*baselines(tables, ["mmlu"]), run(job("mmlu"), tables)]
    page = tables_of(records)
    assert "| *oracle* | 240 |" in page
    assert "| linear, difference | 240 |" in page


@pytest.mark.parametrize("kept", [12, 40])
def test_a_damaged_table_is_named(tmp_path, kept):
    whole = gzip.compress(b'{"prompt": "a"}\n' * 500)
    for spoiled in (whole[:kept], whole[:kept] + b"\xff" * 40):
        (tmp_path / "routellm_mmlu.jsonl.gz").write_bytes(spoiled)
        with pytest.raises(DataError, match=r"routellm_mmlu\.jsonl\.gz: cannot be read"):
            load(tmp_path, tmp_path)
