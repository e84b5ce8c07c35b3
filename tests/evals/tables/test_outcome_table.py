import dataclasses

import numpy as np
import pytest

from tests.evals.tables.tables import table

TABLE = table(
    [[1, 0], [0, 1], [1, 1]],
    cost=[1, 5],
    judged=[[0.5, np.nan]] * 3,
    splits=["fit", "test", "test"],
    prompts=["a", "bb", "ccc"],
)


def test_rows_are_taken_by_their_numbers_or_by_a_mask():
    last = TABLE.take(np.array([2]))
    assert (last.ids.tolist(), last.prompts, last.lengths.tolist()) == (["3"], ["ccc"], [3])
    assert last.quality.tolist() == [[1, 1]]
    assert TABLE.take(np.array([False, False, True])).digest() == last.digest()


def test_a_split_is_taken_alone():
    assert TABLE.of("test").ids.tolist() == ["2", "3"]
    assert len(TABLE.of("choose")) == 0


@pytest.mark.parametrize("field", ["quality", "cost", "predicted", "kinds", "splits", "prompts"])
def test_the_digest_tells_tables_apart_by_every_column(field):
    value = getattr(TABLE, field)
    other = ["z", "bb", "ccc"] if field == "prompts" else value.copy()
    other[0] = "z" if field in {"kinds", "splits", "prompts"} else 0.25
    assert dataclasses.replace(TABLE, **{field: other}).digest() != TABLE.digest()


def test_the_digest_does_not_look_at_the_files_name():
    assert dataclasses.replace(TABLE, source="other").digest() == TABLE.digest()
