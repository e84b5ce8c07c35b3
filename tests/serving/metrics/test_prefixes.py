"""Distinct prefixes and tenants' places are counted in bounded memory."""

import pytest

from serving.metrics.prefixes import KEEP, LATELY_SECONDS, Affinity, DistinctPrefixes
from tests.builders import attempt, completion, request, result, usage
from tests.ledgers import Clock
from tests.metrics import counted
from tests.serving.doctor.logs import fingerprint


def test_prompts_with_one_beginning_are_one_whatever_is_asked():
    seen = DistinctPrefixes()
    for turns in (("hello",), ("hello", "a: hi", "more"), ("other",)):
        seen.note(fingerprint(turns))
    assert seen.count() == 1


def test_each_system_prompt_is_one_more():
    seen = DistinctPrefixes()
    for day in range(7):
        seen.note(fingerprint(system=f"Today is day {day}."))
    assert seen.count() == 7


def test_a_prompt_that_has_no_beginning_of_its_own_is_not_counted():
    seen = DistinctPrefixes()
    seen.note(fingerprint(tools=(), system=""))
    seen.note(None)
    assert seen.count() == 0


def test_what_was_not_seen_for_an_hour_is_forgotten():
    clock = Clock()
    seen = DistinctPrefixes(clock=clock)
    seen.note(fingerprint(system="one"))
    clock.wait(LATELY_SECONDS - 1)
    seen.note(fingerprint(system="two"))
    assert seen.count() == 2
    clock.wait(2)
    assert seen.count() == 1


def test_no_more_are_remembered_than_there_is_room_for():
    seen = DistinctPrefixes(max_prefixes=3)
    for day in range(10):
        seen.note(fingerprint(system=str(day)))
    assert seen.count() == 3


def test_a_tenant_that_stays_at_one_server_has_an_affinity_of_one():
    places = Affinity()
    assert places.share() is None
    for _ in range(3):
        places.note("acme", "large", "a", 100)
    assert places.share() == 1.0


def test_it_is_the_share_of_the_server_that_got_most():
    places = Affinity()
    places.note("acme", "large", "a", 300)
    places.note("acme", "large", "b", 100)
    assert places.share() == pytest.approx(300 * KEEP / (300 * KEEP + 100))


def test_tenants_count_by_their_tokens():
    places = Affinity()
    places.note("steady", "large", "a", 900)
    places.note("torn", "large", "a", 50)
    places.note("torn", "small", None, 50 * KEEP)
    assert places.share() == pytest.approx((900 + 50 * KEEP) / (900 + 2 * 50 * KEEP))


def test_tenants_are_forgotten_beyond_the_bound():
    places = Affinity(max_tenants=1)
    places.note("torn", "large", "a", 100)
    places.note("torn", "large", "b", 100)
    places.note("steady", "large", "a", 100)
    assert places.share() == 1.0


def call(tier, replica, tokens):
    used = usage(input=tokens, cache_read=0)
    return attempt(tier=tier, completion=completion(tier=tier, replica=replica, usage=used))


def test_both_are_told_without_a_tenants_name():
    mine = request(tenant="made up by a client")
    one = result(request=mine, attempts=(call("large", "a", 300),), fingerprint=fingerprint())
    two = result(request=mine, attempts=(call("large", "b", 100),), fingerprint=fingerprint())
    told = counted(one, two)
    assert told("prompt_fingerprint_cardinality") == 1
    assert told("tenant_cache_affinity") == pytest.approx(294 / 394)
