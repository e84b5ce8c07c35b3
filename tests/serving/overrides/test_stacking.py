from hypothesis import given
from hypothesis import strategies as st

from serving.overrides.stacking import layers, merged

HOUR = 3600.0


def at(now, rows):
    """The value in force at a time: of the latest row that is not over."""
    last = [value for value, until in rows if until is None or until > now]
    return last[-1] if last else None


def test_a_key_that_is_none_is_given_back_and_nothing_left_is_the_file():
    assert merged({"ramp": 0.2, "enabled": False}, {"enabled": None}) == {"ramp": 0.2}
    assert merged({"ramp": 0.2}, {"ramp": None}) is None


def test_of_weights_only_the_arms_named_change():
    before = {"weights": {"a": 80, "b": 20}}
    assert merged(before, {"weights": {"b": 0}}) == {"weights": {"a": 80, "b": 0}}
    assert merged(before, {"weights": {"a": None, "b": None}}) is None


def test_a_value_of_false_or_zero_is_kept():
    assert merged(None, {"enabled": False, "ramp": 0}) == {"enabled": False, "ramp": 0}


def test_a_lasting_change_under_a_stop_for_an_hour_leaves_the_stop_its_end():
    standing = [({"enabled": False}, HOUR)]
    rows = [*standing, *layers(standing, {"ramp": 0.2}, None)]
    assert at(0, rows) == {"enabled": False, "ramp": 0.2}
    assert at(HOUR, rows) == {"ramp": 0.2}


def test_a_short_change_over_a_lasting_one_ends_in_the_lasting_one():
    standing = [({"ramp": 0.5}, None)]
    rows = [*standing, *layers(standing, {"enabled": False}, HOUR)]
    assert at(0, rows) == {"ramp": 0.5, "enabled": False}
    assert at(HOUR, rows) == {"ramp": 0.5}


VALUES = st.none() | st.dictionaries(
    st.sampled_from(["ramp", "enabled"]), st.integers(0, 3), min_size=1
)
ENDS = st.none() | st.integers(1, 9)


@given(st.lists(st.tuples(VALUES, ENDS), max_size=5), VALUES, ENDS)
def test_a_change_holds_until_its_end_and_nothing_else_changes_at_any_time(rows, changes, until):
    changes = changes or {"ramp": None}
    after = [*rows, *layers(rows, changes, until)]
    for now in range(11):
        before = at(now, rows)
        holds = until is None or now < until
        assert at(now, after) == (merged(before, changes) if holds else before)
