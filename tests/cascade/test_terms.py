import pytest

from cascade.errors import ConfigError
from cascade.terms import Terms, instant, running, timestamp

TERMS = Terms(weights={"a": 1.0, "b": 1.0})


def test_a_change_leaves_what_it_does_not_name():
    changed = TERMS.changed({"ramp": 0.25, "weights": {"b": 3}})
    assert changed == Terms(ramp=0.25, weights={"a": 1.0, "b": 3.0})
    assert changed.changed({"enabled": False}).ramp == 0.25


def test_times_come_with_their_offset():
    changed = TERMS.changed({"start": "2027-01-31T09:00:00+09:00", "end": "2027-01-31T01:00:00Z"})
    assert changed.end - changed.start == 3600
    assert timestamp(changed.start) == "2027-01-31T00:00:00+00:00"
    assert running(changed, instant("2027-01-31T00:30:00Z"))


def test_a_time_beyond_all_dates_is_the_last_one_or_the_first():
    assert timestamp(1e18) == timestamp(float("inf")) == "9999-12-31T23:59:59+00:00"
    assert timestamp(-1e18) == "0001-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("value", "kept", "params"),
    [
        ({"ramp": 0.5, "weights": {"a": 0}}, {"ramp": 0.5, "weights": {"a": 0}}, []),
        (
            {"weights": {"c": 1, "b": 0}, "enabled": False},
            {"weights": {"b": 0}, "enabled": False},
            ["weights.c"],
        ),
        ({"weights": {"a": 0, "b": 0}, "enabled": False}, {"enabled": False}, ["weights"]),
        ({"weights": {"c": 1}}, {}, ["weights.c"]),
        ({"ramp": 2, "colour": 1, "weights": 3}, {}, ["ramp", "colour", "weights"]),
    ],
)
def test_of_what_does_not_fit_the_rest_is_kept_key_by_key(value, kept, params):
    found, faults = TERMS.bearing(value)
    assert (found, [fault.param for fault in faults]) == (kept, params)


@pytest.mark.parametrize(
    ("value", "param", "said"),
    [
        ({"colour": 1}, "colour", "unknown; there are: enabled, ramp"),
        ({"ramp": 1.5}, "ramp", "from 0 to 1"),
        ({"ramp": float("nan")}, "ramp", "from 0 to 1"),
        ({"ramp": True}, "ramp", "not a number"),
        ({"ramp": "0.5"}, "ramp", "not a number"),
        ({"enabled": 1}, "enabled", "true or false"),
        ({"weights": 3}, "weights", "a weight for each arm"),
        ({"weights": {"c": 1}}, "weights.c", "there is no arm 'c'; there are: a, b"),
        ({"weights": {"a": -1}}, "weights.a", "from 0 on"),
        ({"weights": {"a": float("inf")}}, "weights.a", "from 0 on"),
        ({"weights": {"a": "1"}}, "weights.a", "not a number"),
        ({"weights": {"a": 0, "b": 0}}, "weights", "above 0"),
        ({"start": "2027-01-31T09:00:00"}, "start", "no offset"),
        ({"start": "soon"}, "start", "write a time as"),
        ({"end": 5}, "end", "write a time as"),
        ({"start": "2027-01-02T00:00Z", "end": "2027-01-01T00:00Z"}, "end", "after start"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(value, param, said):
    with pytest.raises(ConfigError, match=said) as refused:
        TERMS.changed(value)
    assert refused.value.param == param
