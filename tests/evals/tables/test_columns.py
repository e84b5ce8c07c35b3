import pytest

from evals.tables import Columns, TableError, columns


def test_a_name_that_means_nothing_else_is_a_tiers():
    found = columns(["small=weak", "quality.large=strong", "prompt=q", "cost.small=c", "tag.u=who"])
    assert found == Columns(
        tiers={"small": "weak", "large": "strong"},
        others={"prompt": "q", "cost.small": "c", "tag.u": "who"},
    )
    assert found.of("prompt") == "q"
    assert found.of("kind") == "kind"


@pytest.mark.parametrize("pair", ["prompt", "=x", "prompt="])
def test_a_mapping_that_is_none_is_refused(pair):
    with pytest.raises(TableError, match="is not NAME=COLUMN"):
        columns([pair])


def test_a_name_with_two_columns_is_refused():
    with pytest.raises(TableError, match="small is given two columns: a and b"):
        columns(["small=a", "small=b"])
