"""The page on routing by what is warm: its example works, and its numbers are those published."""

import re
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from cascade.backends.replica_choice import RuleName
from evals.commands.simulate_replicas import BEGIN, END
from evals.simulate.published import (
    DOLLARS_WITHIN,
    FIRST_TOKEN_MS,
    PUBLISHED_CHAT,
    SKEW_WITHIN,
)
from evals.simulate.published import PUBLISHED_QUESTIONS as QUESTIONS
from serving.cli import cascade

PAGE = (Path(__file__).parents[3] / "docs" / "cache-routing.md").read_text(encoding="utf-8")
MEASURED = PAGE.partition(BEGIN)[2].partition(END)[0]


def tables():
    """The page's tables, each as rows by column name."""
    found = []
    for block in MEASURED.strip().split("\n\n"):
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in block.splitlines()]
        if block.startswith("|"):
            found.append([dict(zip(rows[0], row, strict=True)) for row in rows[2:]])
    return found


def number(cell):
    return float(re.match(r"-?[\d.]+", cell)[0])


def test_the_example_can_work(tmp_path):
    file = tmp_path / "cascade.yaml"
    file.write_text(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])
    done = CliRunner().invoke(cascade, ["config", "check", "--config", str(file)])
    assert done.exit_code == 0, done.exception


def test_every_rule_is_explained():
    assert all(f"| `{rule}` |" in PAGE for rule in get_args(RuleName))


def test_simulated_chat_is_within_the_tolerances_of_what_was_published():
    rows = {(int(row["servers"]), row["rule"]): row for row in tables()[0]}
    for cell, told in PUBLISHED_CHAT.items():
        assert number(rows[cell]["own %"]) == pytest.approx(told.recomputed, abs=told.within)
        if told.dollars is not None:
            assert number(rows[cell]["own $"]) == pytest.approx(told.dollars, rel=DOLLARS_WITHIN)


def test_without_end_of_the_cache_simulation_and_closed_form_agree():
    for row in tables()[1]:
        assert number(row["closed form %"]) == pytest.approx(number(row["published %"]), abs=0.1)
        assert number(row["simulated %"]) == pytest.approx(number(row["closed form %"]), abs=0.5)


def test_simulated_questions_are_within_the_tolerances_of_what_was_published():
    rows = {row["rule"]: row for row in tables()[2]}
    for rule, told in QUESTIONS.items():
        row = rows[rule]
        assert number(row["shared %"]) == pytest.approx(told.recomputed, abs=told.within)
        assert number(row["$"]) == pytest.approx(told.dollars, rel=DOLLARS_WITHIN)
    skew = number(rows["prefix_hash"]["busiest"])
    assert skew == pytest.approx(QUESTIONS["prefix_hash"].busiest, abs=SKEW_WITHIN)


@pytest.mark.parametrize("rate", ["8", "16", "32"])
def test_on_held_out_seeds_our_rule_is_better_than_the_published_one(rate):
    rows = {row["rule"]: row for row in tables()[3] if row["a second"] == rate}
    ours, published = rows["balanced_cache"], rows["cache_aware"]
    for column in ("computed %", "busiest", "busiest prefill", "$", "p99 ms"):
        assert number(ours[column]) < number(published[column])


def test_at_the_published_rate_fewer_wait_than_the_published_prototype_had():
    rows = {(row["a second"], row["rule"]): row for row in tables()[3]}
    assert number(rows["8", "balanced_cache"]["p99 ms"]) < 728
    assert number(rows["8", "cache_aware"]["p99 ms"]) == pytest.approx(FIRST_TOKEN_MS, rel=0.05)
