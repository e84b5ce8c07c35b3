import pytest

from evals.files import ResultFileError
from evals.tables import load, write
from tests.evals.tables.tables import table

TABLE = table(
    [[1, 0], [0, 1], [1, float("nan")]],
    tiers=("z-8b.q4", "a"),
    ids=["x", "y", "z"],
    cost=[1, 0.1],
    judged=[[0.5, float("nan")]] * 3,
    judge_cost=[0.001, 0],
    splits=["fit", "choose", "test"],
    sessions=["", "s", "s"],
    prompts=["a", "b\nc", "\u00fc"],
)


def test_a_table_comes_back_as_it_was_written(tmp_path):
    write(TABLE, tmp_path / "t.parquet")
    found = load(tmp_path / "t.parquet")
    assert found.tiers == TABLE.tiers
    assert found.digest() == TABLE.digest()
    assert found.source == "t.parquet"


def test_columns_that_say_nothing_are_left_out(tmp_path):
    from pyarrow.parquet import read_schema

    write(table([[1, 0]]), tmp_path / "t.parquet")
    names = read_schema(tmp_path / "t.parquet").names
    assert names == ["id", "group", "split", "quality.small", "quality.large"]


def test_one_table_is_always_the_same_bytes(tmp_path):
    write(TABLE, tmp_path / "a.parquet")
    write(TABLE, tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ResultFileError, match="cannot be written"):
        write(TABLE, tmp_path / "none" / "t.parquet")


def test_half_a_surrogate_pair_is_written_as_a_mark(tmp_path):
    some = table([[1, 0]], prompts=["a \ud83d"])
    write(some, tmp_path / "t.parquet", {"small": ["\ud83d"]})
    assert load(tmp_path / "t.parquet").prompts == ["a ?"]
