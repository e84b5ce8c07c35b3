import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from serving.admin.door import MOST_WRONG, WITHIN_SECONDS, Door, TooManyKeysError


class Clock:
    def __init__(self):
        self.now = 1_790_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def shut(at, client):
    try:
        at.look(client)
    except TooManyKeysError:
        return True
    return False


def test_it_is_shut_for_a_minute_from_the_first_of_many_wrong_keys(clock):
    at = Door(clock)
    for i in range(MOST_WRONG):
        assert not shut(at, "10.0.0.5")
        at.wrong("10.0.0.5", f"key {i}")
        clock.now += 1
    with pytest.raises(TooManyKeysError) as refused:
        at.look("10.0.0.5")
    assert refused.value.retry_after == WITHIN_SECONDS - MOST_WRONG
    assert not shut(at, "10.0.0.6")
    clock.now += refused.value.retry_after
    assert not shut(at, "10.0.0.5")
    at.wrong("10.0.0.5", "another")
    assert shut(at, "10.0.0.5")


def test_the_same_wrong_key_again_keeps_nobody_out(clock):
    at = Door(clock)
    for _ in range(10 * MOST_WRONG):
        at.wrong("10.0.0.5", "an old key")
    assert not shut(at, "10.0.0.5")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.5", "10.0.0.5", True),
        ("unknown", "unknown", True),
        ("x" * 60_000, "x" * 50_000, True),
    ],
)
def test_addresses_of_one_client_count_together(clock, one, other, same):
    at = Door(clock)
    for i in range(MOST_WRONG):
        at.wrong(one, f"key {i}")
    assert shut(at, other) is same


def test_it_remembers_no_more_than_it_has_room_for(clock):
    at = Door(clock, room=3)
    for i in range(5):
        at.end(f"session {i}", clock.now + 10)
    assert [at.ended(f"session {i}") for i in range(5)] == [False, False, True, True, True]


def test_a_session_that_has_ended_by_itself_is_forgotten(clock):
    at = Door(clock)
    at.end("old", clock.now + 10)
    assert at.ended("old")
    clock.now += 11
    at.end("new", clock.now + 10)
    assert not at.ended("old")


@pytest.fixture
def busy():
    """Threads that take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(8) as threads:
        yield threads
    sys.setswitchinterval(before)


def test_many_threads_may_ask_it_at_once(clock, busy):
    at = Door(clock, room=50)

    def visit(first):
        for number in range(first, first + 2000):
            at.end(f"session {number}", clock.now - number % 2)
            at.wrong(f"10.0.{number % 100}.5", f"key {number}")
            shut(at, f"10.0.{number % 100}.5")
        return True

    assert all(busy.map(visit, range(0, 16_000, 2000)))
