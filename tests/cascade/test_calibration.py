import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.calibration import MonotoneMap, load_map
from cascade.errors import ConfigError


def test_it_interpolates_between_knots_and_is_flat_outside():
    fitted = MonotoneMap([0.2, 0.6], [0.1, 0.9])
    assert fitted(0.4) == pytest.approx(0.5)
    assert fitted(0.0) == 0.1
    assert fitted(0.2) == 0.1
    assert fitted(0.6) == 0.9
    assert fitted(1.0) == 0.9


@given(st.floats(0, 1), st.floats(0, 1))
def test_it_never_turns_the_order_of_two_scores_round(a, b):
    fitted = MonotoneMap([0.1, 0.3, 0.8], [0.05, 0.5, 0.97])
    low, high = sorted((a, b))
    assert fitted(low) <= fitted(high)


@pytest.mark.parametrize(
    ("x", "y", "fault"),
    [
        ([0.1], [0.1], "at least two"),
        ([0.1, 0.1], [0.1, 0.2], "x of a monotone map must increase"),
        ([0.1, 0.2], [0.3, 0.2], "y of a monotone map must not decrease"),
        ([0.1, 0.2], [0.3, 1.2], "lie in"),
        ([0.1, 0.2, 0.3], [0.3, float("nan"), 0.4], "finite"),
    ],
)
def test_a_map_that_is_not_monotone_is_refused(x, y, fault, tmp_path):
    with pytest.raises(ConfigError, match=fault):
        MonotoneMap(x, y)
    path = tmp_path / "map.json"
    path.write_text(json.dumps({"kind": "monotone_map", "x": x, "y": y}))
    with pytest.raises(ConfigError, match=f"map.json: .*{fault}"):
        load_map(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ("[]", "kind"),
        ('{"kind": "monotone_map", "x": 3, "y": [1]}', "lists of numbers"),
        ('{"kind": "monotone_map", "x": [0, 1]}', "lists of numbers"),
    ],
)
def test_a_file_that_holds_no_map_is_refused_by_name(text, fault, tmp_path):
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"map.json: .*{fault}"):
        load_map(path)
    with pytest.raises(ConfigError, match="no such calibration file"):
        load_map(tmp_path / "other.json")
