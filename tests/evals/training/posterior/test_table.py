import gzip
import json

import pytest

from cascade.types import Verdict
from evals.training.posterior.table import read_judged
from evals.training.rows import TrainingError

ROW = {
    "prompt": "p-1",
    "group": "sums",
    "split": "test",
    "right": {"small": False, "large": True},
    "estimate": {"small": 0.6, "large": 0.8},
    "verdicts": {
        "small": {
            "score": 0.25,
            "others": {"large": 0.7},
            "features": {"margin": 1.5},
            "final": False,
        },
        "large": None,
    },
}


def written(folder, *rows, name="t.jsonl"):
    path = folder / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_a_row_is_read_with_its_verdicts(tmp_path, name):
    rows, tiers = read_judged(written(tmp_path, ROW, "", name=name), "sound")
    (row,) = rows
    assert tiers == ["small", "large"]
    assert (row.prompt, row.group, row.split) == ("p-1", "sums", "test")
    assert row.right == {"small": False, "large": True}
    said = Verdict(judge="sound", score=0.25, others={"large": 0.7}, features={"margin": 1.5})
    assert row.verdicts == {"small": said}


def test_what_may_be_missing_may_be_missing(tmp_path):
    least = {"right": {"a": 1, "b": 0}, "estimate": {"a": 0.5, "b": 1}}
    (row, other), _ = read_judged(written(tmp_path, least, least), "j")
    assert (row.split, row.verdicts) == ("fit", {})
    assert row.group != other.group


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"rihgt": {}}, "rihgt: no such field; there are prompt, group"),
        ({"right": None}, "right: must be an object"),
        ({"right": {"small": True}}, "right: must name two tiers or more"),
        ({"right": {"small": True, "huge": True}}, "the same on every line"),
        ({"right": {"small": 0.5, "large": True}}, "right.small: must be true or false, not 0.5"),
        ({"estimate": {"small": 0.5}}, "estimate.large: is missing"),
        ({"estimate": {"small": "x", "large": 1}}, "estimate.small: must be a finite number"),
        ({"estimate": {"small": 1.5, "large": 1}}, r"estimate.small: must lie in \[0, 1\]"),
        ({"split": "train"}, "split: must be one of fit, calibrate, test, not 'train'"),
        ({"group": 3}, "group: must be a text, not 3"),
        ({"verdicts": {"huge": {}}}, "verdicts: must be an object of verdicts by tier"),
        ({"verdicts": {"small": 3}}, "verdicts.small: must be an object"),
        ({"verdicts": {"small": {"scores": 1}}}, "verdicts.small.scores: no such field"),
        ({"verdicts": {"small": {"score": 2}}}, r"verdicts.small.score: must lie in \[0, 1\]"),
        ({"verdicts": {"small": {"score": 1, "others": 3}}}, "verdicts.small.others: must be an"),
        (
            {"verdicts": {"small": {"score": 1, "features": {"m": None}}}},
            "verdicts.small.features.m: must be a finite number, not None",
        ),
        ({"verdicts": {"small": {"score": 1, "final": 1}}}, "small.final: must be true or false"),
    ],
)
def test_a_fault_is_named_by_its_line_and_field(tmp_path, change, complaint):
    with pytest.raises(TrainingError, match=f"t.jsonl:2: .*{complaint}"):
        read_judged(written(tmp_path, ROW, {**ROW, **change}), "j")


@pytest.mark.parametrize(
    ("name", "rows", "complaint"),
    [
        ("t.csv", [ROW], "ends in .jsonl or .jsonl.gz"),
        ("t.jsonl", [], "holds no rows"),
        ("t.jsonl", [ROW, "{"], "t.jsonl:2: not JSON"),
        ("t.jsonl", ["[]"], "t.jsonl:1: a line must be a JSON object"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, rows, complaint):
    with pytest.raises(TrainingError, match=complaint):
        read_judged(written(tmp_path, *rows, name=name), "j")


def test_a_table_that_is_damaged_or_missing_is_refused_by_name(tmp_path):
    path = written(tmp_path, ROW, name="t.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TrainingError, match=r"t\.jsonl\.gz: cannot be read"):
        read_judged(path, "j")
    with pytest.raises(TrainingError, match=r"gone\.jsonl: cannot be read"):
        read_judged(tmp_path / "gone.jsonl", "j")
