"""The traffic that the page is shown with."""

from dataclasses import replace

from tests.browser.traffic import Traffic


def timeless(traffic):
    return [replace(each, started_at=0.0) for each in traffic.results]


def test_it_is_the_same_whenever_it_ends():
    early, late = Traffic(1_790_000_000.0), Traffic(1_790_031_234.5)
    assert timeless(early) == timeless(late)
    assert len(early.results) > 300
    for one, other in zip(early.results, late.results, strict=True):
        assert abs((other.started_at - one.started_at) - 31_234.5) < 1e-3
    assert [each.score for each in early.feedback] == [each.score for each in late.feedback]


def test_another_seed_is_other_traffic():
    assert timeless(Traffic(1_790_000_000.0)) != timeless(Traffic(1_790_000_000.0, seed=8))
