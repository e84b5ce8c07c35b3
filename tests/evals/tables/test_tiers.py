import math

import pytest

from evals.tables import TableError, columns
from tests.evals.tables.test_loading import loaded


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ({"b": math.nan}, r"t\.jsonl:3: b: must be a number from 0 to 1, not nan"),
        ({"b": 1.5}, r"t\.jsonl:3: b: must be a number from 0 to 1, not 1\.5"),
        ({}, r"t\.jsonl:3: b: is missing; if that is no tier's column, name those that are"),
    ],
)
def test_a_tier_that_nobody_named_is_not_lost_by_a_faulty_row(tmp_path, fault, complaint):
    good = {"a": 1, "b": 0, "c": 1}
    with pytest.raises(TableError, match=complaint):
        loaded(tmp_path, good, good, {"a": 1, "c": 1, **fault}, good)


def test_a_column_of_other_numbers_is_no_tier(tmp_path):
    rows = [{"a": 1, "b": 0, "tokens": tokens} for tokens in (0, 12, 14, 3)]
    assert loaded(tmp_path, *rows).tiers == ("a", "b")


@pytest.mark.parametrize(
    ("pair", "row", "complaint"),
    [
        ("cost=usd", {"a": 1, "b": 0, "usd": 2}, r"cost=usd: of which tier\? .* cost\.TIER=usd"),
        (
            "cost.a=usd",
            {"tier": "a", "quality": 1, "prompt": "Why?", "usd": 2},
            "cost.a=usd: each row is an answer of one tier: say cost=usd",
        ),
    ],
)
def test_a_column_that_would_say_nothing_is_refused(tmp_path, pair, row, complaint):
    with pytest.raises(TableError, match=complaint):
        loaded(tmp_path, row, mapping=columns([pair]))
