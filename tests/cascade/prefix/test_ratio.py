"""Tokens per byte are learned from reports, the newer the more."""

import pytest

from cascade.prefix.ratio import LEAST, MAX_TIERS, MOST, START, TokenRatio


def learned(*reports, tier="small"):
    ratio = TokenRatio()
    for size, tokens in reports:
        ratio.observe(tier, rendered_bytes=size, tokens=tokens)
    return ratio.of(tier)


def test_before_any_report_it_is_the_start():
    assert learned() == START
    assert TokenRatio(start=0.4).of("small") == 0.4


def test_a_few_prompts_of_usual_length_tell_it():
    assert learned(*[(8_000, 2_800)] * 5) == pytest.approx(0.35, abs=0.006)


def test_newer_reports_count_more():
    then_now = [(4_000, 800)] * 200 + [(4_000, 1_600)] * 100
    assert learned(*then_now) == pytest.approx(0.4, abs=0.03)
    assert learned(*reversed(then_now)) == pytest.approx(0.2, abs=0.01)


def test_long_prompts_count_more_than_what_a_template_adds_to_short_ones():
    assert learned(*[(10, 35), (40_000, 9_000)] * 20) == pytest.approx(0.225, abs=0.002)


@pytest.mark.parametrize("report", [(0, 5), (-3, 5), (100, None), (100, 0), (100, -1)])
def test_a_report_that_tells_nothing_changes_nothing(report):
    assert learned(report) == START


@pytest.mark.parametrize(("report", "bound"), [((10_000, 10**9), MOST), ((10**9, 1), LEAST)])
def test_nonsense_leaves_it_within_bounds(report, bound):
    assert LEAST <= learned(*[report] * 100) <= MOST
    assert learned(*[report] * 100) == pytest.approx(bound, rel=0.1)


def test_tiers_are_learned_apart_and_no_more_than_some_are_remembered():
    ratio = TokenRatio()
    for at in range(MAX_TIERS + 1):
        ratio.observe(f"tier-{at}", rendered_bytes=10_000, tokens=5_000)
    assert ratio.of("tier-0") == ratio.of("never") == START
    assert ratio.of("tier-1") > 0.4


def test_a_start_that_no_tokenizer_has_is_refused():
    with pytest.raises(ValueError, match="start is 0"):
        TokenRatio(start=0)
