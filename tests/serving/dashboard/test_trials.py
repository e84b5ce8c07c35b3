import pytest

from serving.dashboard.trials import SHARE_RATES, Row
from serving.results.ratios import Difference
from serving.results.sequences import Interval


def row(what, low, high, better):
    interval = Interval(estimate=(low + high) / 2, low=low, high=high)
    return Row(
        arm="b",
        what=what,
        difference=Difference(arm=None, control=None, units=9, interval=interval),
        relative=False,
        reach=1.0,
        better=better,
    )


@pytest.mark.parametrize(
    ("what", "low", "high", "tone"),
    [
        ("error_rate", 0.1, 0.3, "bad"),
        ("degraded_rate", -0.3, -0.1, "good"),
        ("error_rate", -0.1, 0.3, ""),
        ("escalation_rate", 0.1, 0.3, ""),
        ("escalation_rate", -0.3, -0.1, ""),
    ],
)
def test_a_rate_is_good_or_bad_with_confidence_and_escalation_is_neither(what, low, high, tone):
    assert row(what, low, high, SHARE_RATES[what]).tone == tone
