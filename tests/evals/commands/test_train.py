import json

import pytest
from click.testing import CliRunner

from classifiers.artifact import load
from evals.commands.train import train
from tests.learning import prompts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(folder, count=120):
    texts, labels = prompts(count)
    rows = [
        {"prompt": text, "weak": weak, "strong": strong, "kind": text.split()[0]}
        for text, (weak, strong) in zip(texts, labels.tolist(), strict=True)
    ]
    path = folder / "outcomes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def run(*arguments):
    return CliRunner().invoke(train, [str(each) for each in arguments])


ARGUMENTS = ("--embedder", "none", "--head", "linear", "--folds", "3", "--out", "model.json")


def test_a_table_becomes_an_artifact_with_its_card(folder):
    done = run(table(folder), *ARGUMENTS, "--model", "weak=tiny-1")
    assert done.exit_code == 0, done.output
    assert "APGR" in done.output
    manifest, model = load(folder / "model.json")
    assert dict(manifest.models) == {"weak": "tiny-1", "strong": ""}
    assert model.tiers == ["weak", "strong"]
    metrics = manifest.origin.metrics["cross_validated"]
    assert metrics["n"] == 120
    assert {"random", "length", "kind", "model", "oracle"} == metrics["apgr"].keys()
    card = (folder / "model.md").read_text()
    for part in (manifest.origin.data, "scikit-learn", "by a table of the kinds", "| greet |"):
        assert part in card


def test_the_same_table_gives_the_same_arrays_again(folder):
    path = table(folder)
    run(path, *ARGUMENTS)
    first = json.loads((folder / "model.json").read_text())
    run(path, *ARGUMENTS)
    again = json.loads((folder / "model.json").read_text())
    assert first["arrays"] == again["arrays"]


def test_what_was_measured_is_there_for_machines(folder):
    done = run(table(folder), *ARGUMENTS, "--json")
    told = json.loads(done.stdout)
    assert told["rows"] == {"fit": 120, "calibrate": 0, "test": 0}
    assert told["metrics"]["cross_validated"]["folds"] == 3


def test_rows_of_the_test_split_are_only_measured_on(folder):
    path = table(folder)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    splits = ["fit"] * 80 + ["test"] * 30 + ["calibrate"] * 10
    marked = [{**row, "split": split} for row, split in zip(rows, splits, strict=True)]
    path.write_text("\n".join(map(json.dumps, marked)))
    assert run(path, *ARGUMENTS).exit_code == 0
    origin = load(folder / "model.json")[0].origin
    assert origin.rows == {"fit": 80, "calibrate": 10, "test": 30}
    assert origin.metrics["test"]["n"] == 30


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--out", "model.json"), "give a TABLE to learn from, or --from-audit"),
        (("outcomes.jsonl", "--from-audit", "--out", "model.json"), "and not both"),
        (("outcomes.jsonl", "--out", "model.bin"), "ends in .json"),
        (("outcomes.jsonl", "--out", "no/model.json"), "there is no folder"),
        (("outcomes.jsonl", *ARGUMENTS, "--model", "huge=x"), "there is no such tier"),
        (("outcomes.jsonl", *ARGUMENTS, "--column", "weak=none"), "fewer than two tiers"),
    ],
)
def test_what_cannot_be_trained_is_refused_and_nothing_is_written(folder, arguments, complaint):
    table(folder)
    done = run(*arguments)
    assert done.exit_code != 0
    assert complaint in str(done.exception)
    assert [path.name for path in folder.iterdir()] == ["outcomes.jsonl"]


def test_a_row_at_fault_is_named_and_nothing_is_written(folder):
    path = table(folder)
    path.write_text(path.read_text() + '\n{"prompt": "x", "weak": 3, "strong": 0}')
    mapping = ("--column", "weak=weak", "--column", "strong=strong")
    done = run(path, *ARGUMENTS, *mapping)
    assert "outcomes.jsonl:121: weak: must be a number from 0 to 1, not 3" in str(done.exception)
    assert not (folder / "model.json").exists()
