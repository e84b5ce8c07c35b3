import pytest

from serving.overrides.store import Override, change
from serving.results import Trial
from serving.results.period import SETTLE_SECONDS, current, periods
from tests.serving.results.log import BEGUN, asked, write

FILE = {"a": 50.0, "b": 50.0}


def override(version, at, value, until=None):
    return Override(
        version=version,
        subject="experiment:auto",
        value=value,
        until=until,
        who="me",
        why="to see",
        created_at=at,
    )


def spans(made, now=1000.0):
    return [(each.since, each.until, each.weights) for each in periods(made, FILE, now)]


def test_without_changes_there_is_one_period():
    assert spans([]) == [(None, None, FILE)]


def test_a_new_weight_begins_a_new_one_a_moment_later():
    less = {"a": 50.0, "b": 10.0}
    assert spans([override(1, 100, {"weights": {"b": 10}})]) == [
        (None, 100, FILE),
        (100 + SETTLE_SECONDS, None, less),
    ]


def test_what_moves_no_unit_between_arms_begins_nothing():
    made = [
        override(1, 100, {"ramp": 0.1}),
        override(2, 200, {"ramp": 0.5, "weights": {"a": 10, "b": 10}}),  # the same shares
        override(3, 300, None),
    ]
    assert spans(made) == [(None, None, FILE)]


def test_a_change_with_an_end_gives_the_shares_back():
    made = [override(1, 100, {"weights": {"b": 0}}, until=200)]
    assert [each[:2] for each in spans(made)] == [
        (None, 100),
        (105, 200),
        (205, None),
    ]
    assert [each[:2] for each in spans(made, now=150)] == [(None, 100), (105, None)]


def test_an_arm_that_was_turned_off_leaves_the_results_as_they_were(engine):
    write(engine, [asked("first", created_at=BEGUN), asked("second", created_at=BEGUN + 10)])
    trial = Trial(name="auto", control="a", weights=FILE)
    assert current(engine, trial, BEGUN).since == BEGUN
    change(engine, "experiment:auto", {"weights": {"b": 0}}, who="guardrail", why="worse")
    found = current(engine, trial, 2e9)
    assert (found.since, found.weights) == (BEGUN, FILE)
    assert found.until == pytest.approx(_changed_at(engine))
    change(engine, "experiment:auto", {"weights": {"b": 5}}, who="me", why="mended")
    again = current(engine, trial, 2e9)
    assert again.until is None
    assert again.since > found.until
    assert again.weights == {"a": 50.0, "b": 5.0}


def test_who_says_since_when_gets_the_shares_only_if_they_were_the_same(engine):
    trial = Trial(name="auto", control="a", weights=FILE)
    assert current(engine, trial, 2e9, since=5.0).weights == FILE
    change(engine, "experiment:auto", {"weights": {"b": 5}}, who="me", why="less")
    found = current(engine, trial, 2e9, since=5.0)
    assert (found.since, found.weights) == (5.0, {})


def test_of_nothing_there_is_no_begin(engine):
    assert current(engine, Trial(name="auto", control="a", weights=FILE), 2e9).since is None


def _changed_at(engine):
    from serving.overrides.store import history

    return history(engine)[0].created_at
