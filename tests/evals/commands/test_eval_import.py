import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from evals.commands.eval import COMMANDS, evaluate
from evals.outcomes import EMBEDDED
from evals.tables import load

ROWS = [
    {"q": "2 + 2?", "weak": 1, "strong": 1, "subject": "sums"},
    {"q": "Why?", "weak": 0, "strong": 0.5, "subject": "talk"},
]
COLUMNS = ("--column", "prompt=q", "--column", "small=weak", "--column", "large=strong")


def run(*arguments):
    return CliRunner().invoke(evaluate, ["import", *map(str, arguments)])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "made.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def test_a_table_is_checked_shown_and_written(table, tmp_path):
    out = tmp_path / "o.parquet"
    prices = ("--price", "small=0.01", "--price", "large=1")
    done = run(table, *COLUMNS, "--column", "kind=subject", *prices, "--out", out)
    assert done.exit_code == 0, done.output
    assert "2 prompts" in done.output
    assert "2 groups; written to" in done.output
    found = load(out)
    assert found.tiers == ("small", "large")
    assert found.quality.tolist() == [[1, 1], [0, 0.5]]
    assert found.cost.tolist() == [[0.01, 1]] * 2
    assert found.kinds.tolist() == ["sums", "talk"]


def test_tiers_without_a_cost_are_said(table, tmp_path):
    done = run(table, *COLUMNS, "--out", tmp_path / "o.parquet")
    assert "have no cost: name its column" in done.output
    assert "unknown" in done.output


def test_parts_are_of_the_stated_sizes(table, tmp_path):
    out = tmp_path / "o.parquet"
    run(table, *COLUMNS, "--fit-share", 0, "--choose-share", 1, "--out", out)
    assert set(load(out).splits) == {"choose"}


def test_a_fault_leaves_no_file_and_an_old_one_as_it_was(table, tmp_path):
    table.write_text(table.read_text().replace("0.5", "NaN"))
    out = tmp_path / "o.parquet"
    out.write_text("old")
    done = run(table, *COLUMNS, "--out", out)
    assert done.exception.message.endswith(
        "made.jsonl:2: strong: must be a number from 0 to 1, not nan"
    )
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.jsonl", "o.parquet"]


def test_only_parquet_is_written_and_only_into_a_folder_that_is_there(table, tmp_path):
    done = run(table, *COLUMNS, "--out", tmp_path / "o.csv")
    assert "a file that ends in .parquet" in done.exception.message
    done = run(table, *COLUMNS, "--out", tmp_path / "none" / "o.parquet")
    assert "there is no folder" in done.exception.message


def test_collected_answers_are_no_table_and_the_way_to_one_is_said(tmp_path):
    done = run(EMBEDDED, "--out", tmp_path / "o.parquet")
    assert "make one with `cascade eval collect PROMPTS --answers" in done.exception.message


def test_the_group_lists_its_commands():
    done = CliRunner().invoke(evaluate, ["--help"])
    assert all(f"  {name} " in done.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_there_and_says_what_it_does(name):
    done = CliRunner().invoke(evaluate, [name, "--help"])
    assert done.exit_code == 0, done.exception
    assert done.output.startswith(f"Usage: eval {name} ")


DATA = Path(os.environ.get("CASCADE_DATA") or Path(__file__).parents[4] / "shared" / "data")
DOCUMENTED = Path(__file__).parents[3] / "docs" / "eval.md"


def documented():
    """The arguments of the import commands of the page that read one of the published tables."""
    lines = DOCUMENTED.read_text().replace("\\\n", " ").splitlines()
    commands = [line.split() for line in lines if line.startswith("cascade eval import data/")]
    return {words[3].removeprefix("data/"): words[4:] for words in commands}


@pytest.mark.parametrize(
    ("name", "rows", "tiers"),
    [
        ("routellm_mmlu.jsonl.gz", 9608, 2),
        ("routellm_gsm8k.jsonl.gz", 917, 2),
        ("llmrouter_9models.jsonl.gz", 5608, 9),
    ],
)
def test_each_published_table_loads_with_its_documented_command(tmp_path, name, rows, tiers):
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there; CASCADE_DATA names its folder")
    words = documented()[name]
    words[words.index("--out") + 1] = str(tmp_path / "o.parquet")
    done = run(DATA / name, *words)
    assert done.exit_code == 0, done.exception
    found = load(tmp_path / "o.parquet")
    assert found.quality.shape == (rows, tiers)
    assert (found.cost > 0).all()
    means = found.cost.mean(axis=0)
    assert (means == sorted(means)).all()
