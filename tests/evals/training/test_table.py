import csv
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from evals.tables import Columns, TableError, columns, write
from evals.training.table import read_table
from tests.evals.tables.tables import table

ROWS = [
    {"question": "2 + 2?", "weak": 1, "strong": 1, "subject": "sums"},
    {"question": "Why?", "weak": 0, "strong": 0.5, "subject": "talk"},
]
MAPPING = columns(["prompt=question", "small=weak", "large=strong", "kind=subject"])


def jsonl(path, rows=ROWS):
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def as_csv(path, rows=ROWS):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def parquet(path, rows=ROWS):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(
        arrow.Table.from_pylist([{**row, "weak": float(row["weak"])} for row in rows]), path
    )
    return path


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (jsonl, "t.jsonl"),
        (jsonl, "t.jsonl.gz"),
        (as_csv, "t.csv"),
        (parquet, "t.parquet"),
    ],
)
def test_a_table_of_each_format_is_read_alike(tmp_path, write, name):
    first, second = read_table(write(tmp_path / name), MAPPING)
    assert first.request.messages == [{"role": "user", "content": "2 + 2?"}]
    assert first.labels == {"small": 1.0, "large": 1.0}
    assert list(second.labels.values()) == [0.0, 0.5]
    assert (first.kind, second.kind) == ("sums", "talk")
    assert first.group != second.group


def test_without_a_mapping_every_column_of_labels_is_a_tier(tmp_path):
    rows = [{"prompt": "a", "weak": 1, "strong": True, "size": 7, "note": "x"}]
    (line,) = read_table(jsonl(tmp_path / "t.jsonl", rows), Columns())
    assert line.labels == {"weak": 1.0, "strong": 1.0}


def test_an_object_of_scores_is_a_tier_for_each(tmp_path):
    rows = [{"prompt": "a", "scores": {"m-1.5": 0.5, "m-2": 1}}]
    (line,) = read_table(jsonl(tmp_path / "t.jsonl", rows), Columns())
    assert line.labels == {"m-1.5": 0.5, "m-2": 1.0}
    mapping = columns(["big=scores.m-2", "small=scores.m-1.5"])
    (line,) = read_table(tmp_path / "t.jsonl", mapping)
    assert line.labels == {"big": 1.0, "small": 0.5}


def test_what_is_not_known_is_left_open(tmp_path):
    rows = [{**ROWS[0], "weak": None}, {**ROWS[1], "weak": ""}]
    for line in read_table(jsonl(tmp_path / "t.jsonl", rows), MAPPING):
        assert np.isnan(line.labels["small"])


def test_conversations_groups_splits_and_tags_are_taken_over(tmp_path):
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    row = {"prompt": messages, "a": 1, "b": 0, "group": "g", "split": "test", "who": "me"}
    mapping = columns(["a=a", "b=b", "tag.user=who"])
    (line,) = read_table(jsonl(tmp_path / "t.jsonl", [row]), mapping)
    assert line.request.messages == messages
    assert (line.group, line.split) == ("g", "test")
    assert line.request.tags == {"user": "me"}


@pytest.mark.parametrize(
    ("second", "complaint"),
    [
        ({**ROWS[1], "weak": 2}, r"t\.jsonl:2: weak: must be a number from 0 to 1, not 2"),
        ({**ROWS[1], "weak": "yes"}, r"t\.jsonl:2: weak: .* not 'yes'"),
        ({**ROWS[1], "question": 7}, r"t\.jsonl:2: question: must be a text"),
        ({"question": "x", "weak": 1, "subject": ""}, r"t\.jsonl:2: there is no column 'strong'"),
        ({**ROWS[1], "weak": float("nan")}, r"t\.jsonl:2: weak: .* not nan"),
    ],
)
def test_a_row_at_fault_is_named_by_its_line(tmp_path, second, complaint):
    with pytest.raises(TableError, match=complaint):
        read_table(jsonl(tmp_path / "t.jsonl", [ROWS[0], second]), MAPPING)


def test_a_table_of_ours_is_learned_from_without_what_is_chosen_on(tmp_path):
    splits = ["fit", "choose", "test"]
    path = tmp_path / "t.parquet"
    write(table([[1, 0]] * 3, splits=splits, prompts=["a", "b", "c"]), path)
    lines = read_table(path, Columns())
    assert [line.split for line in lines] == ["fit", "calibrate", "test"]
    assert lines[0].labels == {"small": 1.0, "large": 0.0}


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / "t.csv", Columns())


@pytest.mark.skipif("CASCADE_DATA" not in os.environ, reason="CASCADE_DATA names no folder of data")
@pytest.mark.parametrize(
    ("name", "tiers", "rows"),
    [
        ("routellm_mmlu.jsonl.gz", ["weak", "strong"], 9608),
        ("routellm_gsm8k.jsonl.gz", ["weak", "strong"], 917),
        ("llmrouter_9models.jsonl.gz", None, 5608),
    ],
)
def test_published_tables_load_without_a_mapping(name, tiers, rows):
    lines = read_table(Path(os.environ["CASCADE_DATA"]) / name, Columns())
    assert len(lines) == rows
    assert list(lines[0].labels) == tiers if tiers else len(lines[0].labels) == 9
