"""What a warm prefix is worth to later turns, against what it turns out to be worth."""

import math
import random

import pytest

from cascade.traffic import MAX_PREFIXES, MAX_SESSIONS, Traffic, Whose, Worth
from tests.ledgers import Clock

LIFETIME = 300.0
TURN = Whose("acme", "s", "prefix")


class Stream:
    """Turns of one prefix, one every so many seconds, that want tier "t" by u."""

    def __init__(self, us, *, gap, turns=1000, whose=TURN):
        self.clock = Clock()
        self.traffic = Traffic(clock=self.clock)
        for turn in range(turns):
            self.traffic.began(whose)
            self.traffic.ended(whose, {"t": us[turn % len(us)]})
            self.clock.wait(gap)

    def worth(self, *, age=0.0, lifetime=LIFETIME, whose=TURN, tier="t"):
        for _ in range(500):  # each time it is solved a little further
            found = self.traffic.worth(whose, tier, lifetime, age)
        return found


def came_to(d, us, gap, *, episodes=20_000):
    """What a prefix that is warm now gained over one that is cold, in a Poisson stream of turns.

    A turn that finds it warm takes its surplus u. One that finds it cold pays 1 to warm it, if u
    and the d that it leaves are worth that.
    """
    rng, gained = random.Random(7), 0.0  # noqa: S311 - a simulation
    for _ in range(episodes):
        now, warm, cold = 0.0, LIFETIME, -1.0
        while True:
            now += rng.expovariate(1.0 / gap)
            if now >= warm:
                break
            u = rng.choice(us)
            if u <= 0.0:
                continue
            warm = now + LIFETIME
            if now < cold:
                break
            if u + d >= 1.0:
                gained += 1.0
                break
            gained += u
    return gained / episodes


@pytest.mark.parametrize("gap", [60.0, 300.0, 1500.0])
@pytest.mark.parametrize("us", [[1.0], [0.4], [0.1], [0.1, 1.0], [0.6, 0.0], [0.02, 0.4, 0.0]])
def test_the_worth_of_a_warm_prefix_is_what_it_comes_to_in_a_stream_of_turns(us, gap):
    d = Stream(us, gap=gap).worth().warmed
    assert d == pytest.approx(came_to(d, us, gap), abs=0.02)


def test_where_every_turn_would_pay_for_it_the_worth_is_the_chance_that_one_comes():
    worth = Stream([1.0], gap=100.0).worth()
    assert worth.warmed == pytest.approx(1.0 - math.exp(-3.0))


def test_where_no_turn_would_the_small_surpluses_of_all_that_come_in_time_add_up():
    gap = LIFETIME / math.log(2.0)  # one comes in time with a chance of one half
    assert Stream([0.1], gap=gap).worth().warmed == pytest.approx(0.1)
    gap = LIFETIME / math.log(5.0)  # of four fifths
    assert Stream([0.1], gap=gap).worth().warmed == pytest.approx(0.4)


def test_a_tier_that_no_turn_wants_is_worth_nothing():
    assert Stream([0.0], gap=60.0).worth().warmed == pytest.approx(0.0, abs=1e-6)
    assert Stream([-3.0], gap=60.0).worth().warmed == pytest.approx(0.0, abs=1e-6)


def test_before_anything_is_known_every_turn_is_taken_to_want_every_tier():
    worth = Stream([0.0], gap=100.0).worth(tier="new")
    assert worth.warmed == pytest.approx(1.0 - math.exp(-3.0))


def test_a_prefix_that_came_once_has_no_rate_and_leaves_nothing():
    assert Stream([1.0], gap=60.0, turns=1).worth() == Worth(0.0, 0.0)
    assert Stream([1.0], gap=60.0).worth(whose=Whose("acme", "s", "other")) == Worth(0.0, 0.0)


def test_what_was_used_just_now_gains_nothing_by_being_used_again():
    stream = Stream([1.0], gap=100.0)
    assert stream.worth(age=0.0).renewed == pytest.approx(0.0)
    later = stream.worth(age=200.0).renewed
    assert later == pytest.approx(math.exp(-1.0) - math.exp(-3.0))
    whole = stream.worth(age=LIFETIME)
    assert whole.renewed == pytest.approx(whole.warmed)


def test_newer_turns_count_more():
    stream = Stream([0.0], gap=60.0)
    for _ in range(500):
        stream.traffic.began(TURN)
        stream.traffic.ended(TURN, {"t": 1.0})
        stream.clock.wait(600.0)
    assert stream.worth().warmed == pytest.approx(1.0 - math.exp(-0.5), rel=0.01)


def test_tenants_have_nothing_in_common():
    stream = Stream([1.0], gap=60.0)
    assert stream.worth(whose=Whose("other", "s", "prefix")) == Worth(0.0, 0.0)
    stream.traffic.ended(TURN, {"t": 1.0}, "t")
    assert stream.traffic.served_by("acme", "s") == "t"
    assert stream.traffic.served_by("other", "s") == ""


def test_conversations_of_a_tenant_count_together():
    stream = Stream([1.0], gap=60.0)
    assert stream.worth(whose=Whose("acme", "another", "prefix")).warmed > 0.9


def test_a_clock_that_goes_back_makes_no_chance_of_it_that_is_none():
    stream = Stream([1.0], gap=60.0, turns=3)
    steady = stream.worth()
    stream.clock.wait(-1000.0)
    for _ in range(5):
        stream.traffic.began(TURN)
        worth = stream.worth(age=0.0)
        assert 0.0 <= worth.renewed <= worth.warmed <= 1.0
    assert worth.warmed >= steady.warmed  # five more turns came, and no time passed


def test_turns_at_the_same_moment_are_no_rate_yet():
    assert Stream([1.0], gap=0.0, turns=10).worth() == Worth(0.0, 0.0)


def test_a_turn_without_a_session_has_no_tier_that_served_it():
    traffic, alone = Traffic(), Whose("acme", "", "prefix")
    traffic.began(alone)
    traffic.ended(alone, {"t": 1.0}, "t")
    assert traffic.served_by("acme", "") == ""


def test_a_turn_that_nobody_answered_leaves_its_session_where_it_was():
    traffic = Traffic()
    traffic.ended(TURN, {"t": 1.0}, "t")
    traffic.ended(TURN, {"t": 1.0})
    assert traffic.served_by("acme", "s") == "t"


def test_of_too_many_prefixes_the_one_used_longest_ago_is_forgotten():
    stream = Stream([1.0], gap=60.0)
    for number in range(MAX_PREFIXES - 1):
        stream.traffic.began(Whose("acme", "s", str(number)))
    assert stream.worth().warmed > 0.0
    stream.traffic.began(Whose("acme", "s", "one more"))
    assert stream.worth() == Worth(0.0, 0.0)


def test_of_too_many_sessions_the_one_answered_longest_ago_is_forgotten():
    traffic = Traffic()
    for number in range(MAX_SESSIONS + 1):
        traffic.ended(Whose("acme", str(number)), {}, "t")
    assert traffic.served_by("acme", "0") == ""
    assert traffic.served_by("acme", "1") == "t"
