"""The table: its cells, how it is printed, and the command."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from evals.commands.simulate import simulate
from evals.panel_report import as_markdown
from evals.simulate.published import PUBLISHED_CHAT, PUBLISHED_QUESTIONS
from evals.simulate.replica_table import HELD_OUT, PARTS, cells, filled, record, seeds_of, tables


def shrunk(cell):
    workload = replace(cell.setting.workload, warm_up=50)
    return replace(cell, setting=replace(cell.setting, workload=workload, requests=50))


@pytest.fixture(scope="module")
def small():
    told = []
    done = [filled(shrunk(cell), seeds_of(cell, 2), told.append) for cell in cells(50)]
    assert len(told) == sum(len(each.runs) for each in done)
    return done


def test_every_published_number_has_a_cell():
    listed = [each.published for each in cells(10) if each.published]
    for told in (*PUBLISHED_CHAT.values(), *PUBLISHED_QUESTIONS.values()):
        assert listed.count(told) >= 2  # in both ways of counting
    assert {each.part for each in cells(10)} == set(PARTS)


def test_held_out_seeds_are_none_of_the_others():
    held = [seeds_of(each, 50) for each in cells(10) if each.part == "held-out"]
    others = [seeds_of(each, 50) for each in cells(10) if each.part != "held-out"]
    assert all(min(seeds) == HELD_OUT and len(seeds) == 8 for seeds in held)
    assert max(max(seeds) for seeds in others) < HELD_OUT


def test_the_tables_have_a_row_for_each_rule_with_the_published_number_beside(small):
    chat, infinite, questions, held, _ = tables(small)
    assert [(row[0], row[1], row[2]) for row in chat.rows[:3]] == [
        ("1", "round_robin", "48.6"),
        ("2", "round_robin", "49"),
        ("2", "session", "34.7"),
    ]
    assert [row[:3] for row in infinite.rows] == [("4", "25.8", "25.80"), ("8", "39.4", "39.34")]
    rules = ["random", "prefix_hash", "cache_aware", "balanced_cache"]
    assert [row[0] for row in questions.rows] == rules
    rates = ["4", "8", "16", "32"]
    assert [row[:2] for row in held.rows] == [(rate, rule) for rate in rates for rule in rules[1:]]
    for table in (chat, infinite, questions, held):
        assert {len(row) for row in table.rows} == {len(table.head)}


def test_the_page_says_how_it_was_measured(small):
    text = as_markdown(tables(small))
    assert "seeds 0 to 1 (100 to 107 held out)" in " ".join(text.split())
    assert "| 8 | cache_aware | 4.3 |" in text


def test_a_record_has_every_run_with_its_seed(small):
    told = json.loads(json.dumps(record(small[0])))
    assert [each["seed"] for each in told["runs"]] == [0, 1]
    assert told["published"]["recomputed"] == 48.6
    assert (told["rule"], told["replicas"], told["accounting"]) == ("round_robin", 1, "own")


def invoke(*arguments):
    return CliRunner().invoke(simulate, ["replicas", "--seeds", "1", *arguments])


def test_the_command_prints_json_for_machines_and_its_progress_elsewhere():
    done = invoke("--only", "infinite", "--requests", "100", "--json")
    assert done.exit_code == 0, done.exception
    told = json.loads(done.stdout)
    assert [each["replicas"] for each in told] == [4, 8]
    assert "infinite 2/2" in done.stderr


def test_a_page_wants_all_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("x")
    done = invoke("--only", "chat", "--write", str(page))
    assert done.exit_code == 2
    assert "--write wants all tables" in done.stderr
