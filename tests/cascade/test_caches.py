"""A card says how a cache works, and refuses to say what cannot be."""

import pytest

from cascade.caches import CacheCard


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("block", 0),
        ("slots", 0),
        ("minimum_tokens", -1),
        ("capacity_tokens", -1),
        ("capacity_tokens", 0),
        ("ttl_seconds", 0.0),
        ("ttl_seconds", -5.0),
        ("ttl_seconds", float("nan")),
    ],
)
def test_a_field_out_of_its_range_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"^{field} is"):
        CacheCard(kind="blocks", **{field: value})


def test_a_cache_of_blocks_holds_at_least_one():
    assert CacheCard(kind="blocks", block=16, capacity_tokens=16).capacity_tokens == 16
    with pytest.raises(ValueError, match="capacity_tokens is 15, below 16"):
        CacheCard(kind="blocks", block=16, capacity_tokens=15)


def test_a_time_to_live_needs_its_time():
    assert CacheCard(kind="ttl", ttl_seconds=300).ttl_seconds == 300
    with pytest.raises(ValueError, match="ttl_seconds is missing"):
        CacheCard(kind="ttl")


def test_slots_may_have_no_memory_of_the_host_besides():
    assert CacheCard(kind="slots", slots=4, capacity_tokens=0).capacity_tokens == 0
