from dataclasses import replace

import pytest

from serving.results import Results, Trial
from serving.results.clauses import ENGLISH
from serving.results.comparisons import Comparison
from serving.results.ratios import Difference
from serving.results.sequences import Interval
from serving.results.shares import shares
from serving.results.verdict import Decision, decision, sentence, units_to_decide


def difference(bounds, **fields):
    interval = (
        None
        if bounds is None
        else Interval(**dict(zip(("low", "estimate", "high"), bounds, strict=True)))
    )
    return Difference(arm=None, control=None, units=1000, interval=interval, **fields)


def compared(cost, quality, source="feedback", **fields):
    quality = {source: difference(quality, **fields)} if quality or fields else {}
    return Comparison(arm="B", cost=difference(cost), quality=quality, rates={})


def found(comparison, came=None):
    return Results(
        trial=Trial(name="auto", control="A"),
        arms=[],
        comparisons=[comparison],
        crossed=0,
        shares=shares({"A": 1, "B": 1}, came or {}),
        acting=[],
    )


def said(comparison, came=None):
    return sentence(found(comparison, came), comparison).told(ENGLISH)


def test_what_is_not_decided_is_said_with_its_numbers():
    comparison = compared((-0.35, -0.31, -0.27), (-0.011, -0.003, 0.005))
    assert said(comparison) == (
        "B costs 31 % less [27, 35]; quality -0.3 points [-1.1, 0.5]: not yet decided"
    )


@pytest.mark.parametrize(
    ("cost", "quality", "expected"),
    [
        ((-0.35, -0.31, -0.27), (-0.009, -0.003, 0.005), Decision.TAKE),
        ((-0.35, -0.31, -0.27), (-0.03, -0.02, -0.011), Decision.WORSE),
        ((0.1, 0.2, 0.3), (0.001, 0.02, 0.04), Decision.DEARER),
        ((0.1, 0.2, 0.3), (-0.01, 0.0, 0.009), Decision.DROP),
        ((-0.1, 0.0, 0.1), (0.001, 0.02, 0.04), Decision.UNDECIDED),
        ((-0.35, -0.31, -0.27), None, Decision.EARLY),
        (None, (-0.01, 0.0, 0.01), Decision.EARLY),
    ],
)
def test_intervals_decide(cost, quality, expected):
    comparison = compared(cost, quality)
    assert decision(found(comparison), comparison) is expected


def test_every_decision_is_a_sentence():
    cheap, dear = (-0.123, -0.05, -0.01), (0.031, 0.04, 0.05)
    assert said(compared(cheap, (-0.004, 0.0, 0.004))) == (
        "B costs 5.0 % less [1.0, 12]; quality 0.0 points [-0.4, 0.4]: "
        "it costs less and is not more than 1 point worse"
    )
    assert said(compared(dear, (0.01, 0.02, 0.03))) == (
        "B costs 4.0 % more [3.1, 5.0]; quality +2.0 points [1.0, 3.0]: "
        "better and dearer, for you to weigh"
    )
    assert said(compared(dear, (-0.05, -0.04, -0.03))).endswith("worse by more than 1 point")
    assert said(compared(cheap, None)).endswith(
        "quality not known yet: nobody says how good the answers are: send feedback, or let a "
        "judge sample them"
    )
    assert said(compared(cheap, None, needs=7)).endswith(
        "too early, 7 more units with a word on their quality are needed"
    )
    early = compared(cheap, None, needs=7)
    both = {**early.quality, "preference": difference(None, needs=2)}
    assert said(replace(early, quality=both)).endswith(
        "too early, 7 more units with a word on their quality are needed"
    )
    assert said(compared(cheap, (-0.01, 0.0, 0.01)), {"A": 900, "B": 100}).endswith(
        "the arms did not get their share of units, so none of this can be trusted"
    )


def test_a_judges_sample_goes_before_feedback():
    comparison = Comparison(
        arm="B",
        cost=difference((-0.3, -0.2, -0.1)),
        quality={
            "feedback": difference((-0.1, -0.05, -0.02)),
            "judge:expert": difference((-0.002, 0.001, 0.004)),
            "preference": difference((0.2, 0.3, 0.4)),
        },
        rates={},
    )
    assert comparison.source == "judge:expert"
    assert "quality by expert +0.1 points [-0.2, 0.4]: it costs less" in said(comparison)
    source = sentence(found(comparison), comparison).values["quality"]
    assert source.key == "verdict.quality.judge"


def test_it_is_said_how_many_more_units_would_decide():
    near, far = (-0.013, 0.0, 0.013), (-0.13, 0.0, 0.13)
    few, many = (
        units_to_decide(
            found(compared((-0.3, -0.2, -0.1), quality)), compared((-0.3, -0.2, -0.1), quality)
        )
        for quality in (near, far)
    )
    assert 300 < few < 3000 < many
    decided = compared((-0.3, -0.2, -0.1), (-0.009, 0.0, 0.009))
    assert units_to_decide(found(decided), decided) is None
    early = compared(None, near)
    assert units_to_decide(found(early), early) is None
