import pytest

from cascade.averages import Averages


def test_what_was_never_seen_is_what_is_said_otherwise():
    assert Averages().of("a", 256.0) == 256.0


def test_what_is_said_otherwise_counts_as_one_value_that_was_there_first():
    averages = Averages()
    averages.observe("a", 100.0)
    assert averages.of("a", 256.0) == pytest.approx(178.0)
    assert averages.of("b", 256.0) == 256.0


def test_many_values_leave_little_of_it_and_newer_ones_count_more():
    averages = Averages(keep=0.9)
    for _ in range(100):
        averages.observe("a", 10.0)
    for _ in range(100):
        averages.observe("a", 20.0)
    assert averages.of("a", 20.0) == pytest.approx(20.0, abs=0.01)
    assert averages.of("a", 0.0) == pytest.approx(20.0 * 10 / 11, rel=0.01)


def test_no_more_keys_are_remembered_than_allowed_and_those_heard_of_last_stay():
    averages = Averages(max_keys=2)
    for key in ("a", "b", "a", "c"):
        averages.observe(key, 1.0)
    assert averages.of("b", 0.0) == 0.0
    assert averages.of("a", 0.0) > 0.0
    assert averages.of("c", 0.0) > 0.0
