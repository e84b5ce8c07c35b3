"""What the calls that may still be made are worth."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.policies.chances import Judgement
from cascade.policies.outlook import Candidate, Outlook
from cascade.types import Beliefs

TIERS = ("a", "b", "c")


def plain(kappa, candidates, moves=()):
    """Beliefs of which a verdict reveals a share kappa; moves are (judged, moved, covariance)."""
    known = {(c.tier, c.tier): kappa * c.mean * (1.0 - c.mean) for c in candidates}
    return Beliefs(
        mean={c.tier: c.mean for c in candidates},
        covariance=known | {(i, j): value for i, j, value in moves},
    )


def worth(choices, tier, *, judged):
    (found,) = [c.worth for c in choices if c.candidate.tier == tier and c.judged == judged]
    return found


class BruteForce:
    """Every course of calls, spelt out: the worth of the best, and the quality it leads to.

    Args:
        ahead: judged calls that are looked ahead; None for all there are.
    """

    def __init__(self, candidates, beliefs, usd, *, ahead=None):
        self.tiers = {c.tier: c for c in candidates}
        self.known, self.usd = beliefs.covariance or {}, usd
        self.ahead = len(candidates) if ahead is None else ahead
        self.judgements = {}

    def best(self, in_hand, means, left, ahead):
        """(worth, quality) of the best that can be done."""
        courses = [(self.usd * in_hand, in_hand)]
        for tier in left:
            courses += self.calls(tier, in_hand, means, left, ahead).values()
        return max(courses)

    def calls(self, tier, in_hand, means, left, ahead):
        """(worth, quality) of asking a tier, by whether it is judged."""
        one, mean = self.tiers[tier], means[tier]
        found = {False: (self.usd * mean - one.price, mean)}
        if one.judging is None or ahead == 0:
            return found
        first, rest = self.tiers[tier].mean, [other for other in left if other != tier]
        variance = self.known.get((tier, tier), 0.0)
        judgement = self.judgements.setdefault(
            tier, Judgement(min(1.0, variance / (first * (1.0 - first))) if variance else 0.0)
        )
        value, quality = 0.0, 0.0
        for weight, score in judgement.cases(mean):
            moved = dict(means)
            for other in rest if variance else ():
                slope = self.known.get((tier, other), 0.0) / variance
                moved[other] = min(1.0, max(0.0, means[other] + slope * (score - mean)))
            then = self.best(max(in_hand, score), moved, rest, ahead - 1)
            value, quality = value + weight * then[0], quality + weight * then[1]
        return {**found, True: (value - one.price - one.judging, quality)}

    def choices(self, in_hand):
        means = {tier: c.mean for tier, c in self.tiers.items()}
        every = list(self.tiers)
        return {
            (tier, judged): course
            for tier in every
            for judged, course in self.calls(tier, in_hand, means, every, self.ahead).items()
        }


@st.composite
def situations(draw, tiers=TIERS, *, unjudged=()):
    candidates = [
        Candidate(
            tier,
            draw(st.floats(0.05, 0.95)),
            draw(st.floats(-0.0005, 0.005)),
            None if tier in unjudged else draw(st.sampled_from([0.0, 0.0002])),
        )
        for tier in tiers
    ]
    moves = [(i, j, draw(st.floats(-0.04, 0.04))) for i in tiers for j in tiers if i != j]
    beliefs = plain(draw(st.sampled_from([0.0, 0.1, 0.4, 1.0])), candidates, moves)
    return candidates, beliefs, draw(st.sampled_from([0.0, 0.3, 0.8]))


def agrees(situation, usd=0.01, *, ahead=None):
    candidates, beliefs, best = situation
    slow = BruteForce(candidates, beliefs, usd, ahead=ahead).choices(best)
    found = Outlook(candidates, beliefs, usd).choices(best)
    assert {(c.candidate.tier, c.judged) for c in found} == set(slow)
    for choice in found:
        expected = slow[choice.candidate.tier, choice.judged][0]
        assert math.isclose(choice.worth, expected, rel_tol=1e-9, abs_tol=1e-12)


@given(situation=situations(TIERS[:2]))
@settings(deadline=None)
def test_of_two_tiers_it_is_worth_what_trying_every_course_finds(situation):
    agrees(situation)


@given(situation=situations(unjudged=("c",)))
@settings(max_examples=40, deadline=None)
def test_of_three_tiers_of_which_two_are_judged_as_well(situation):
    agrees(situation)


@given(situation=situations())
@settings(max_examples=40, deadline=None)
def test_of_three_judged_tiers_two_verdicts_are_looked_ahead(situation):
    agrees(situation, ahead=2)


@given(situation=situations(TIERS[:2]), dollars=st.floats(0.0005, 0.02), times=st.floats(1.0, 20.0))
@settings(deadline=None)
def test_where_quality_is_worth_more_the_best_course_gives_no_less_of_it(situation, dollars, times):
    candidates, beliefs, best = situation

    def quality(usd):
        return max(BruteForce(candidates, beliefs, usd).choices(best).values())[1]

    assert quality(dollars * times) >= quality(dollars) - 1e-9


def test_an_answer_taken_unseen_is_worth_its_quality_less_its_price():
    one = Candidate("a", 0.7, 0.002)
    (choice,) = Outlook([one], Beliefs(mean={}), 0.01).choices(0.0)
    assert choice.worth == pytest.approx(0.01 * 0.7 - 0.002)
    assert not choice.judged


def test_a_knowing_judge_pays_the_large_model_only_where_the_small_one_is_wrong():
    small, large = Candidate("a", 0.6, 0.001, 0.0005), Candidate("b", 0.9, 0.004)
    known = {("a", "a"): 0.6 * 0.4}
    beliefs = Beliefs(mean={"a": 0.6, "b": 0.9}, covariance=known)
    choices = Outlook([small, large], beliefs, 0.01).choices(0.0)
    # 0.6 right at once; else the large one, 0.9 right for 0.004
    expected = 0.6 * 0.01 + 0.4 * (0.009 - 0.004) - 0.0015
    assert worth(choices, "a", judged=True) == pytest.approx(expected, rel=0.02)
    assert worth(choices, "a", judged=False) == pytest.approx(0.005)
    assert worth(choices, "b", judged=False) == pytest.approx(0.005)


def test_a_silent_judge_is_worth_nothing_but_costs_what_it_costs():
    small, large = Candidate("a", 0.6, 0.001, 0.0005), Candidate("b", 0.9, 0.004)
    for known in (None, {}, {("a", "a"): 0.0}):
        beliefs = Beliefs(mean={"a": 0.6, "b": 0.9}, covariance=known)
        choices = Outlook([small, large], beliefs, 0.02).choices(0.0)
        unseen, judged = (worth(choices, "a", judged=each) for each in (False, True))
        assert unseen == pytest.approx(0.02 * 0.6 - 0.001)
        # Whatever it says, the large one is asked next, or is not.
        assert judged == pytest.approx(max(0.02 * 0.6, 0.02 * 0.9 - 0.004) - 0.0015)


def test_a_judge_that_tells_that_both_are_wrong_is_worth_less_than_one_that_tells_them_apart():
    small, large = Candidate("a", 0.5, 0.0005, 0.0), Candidate("b", 0.8, 0.003)
    found = {
        sign: worth(
            Outlook(
                [small, large], plain(0.4, [small, large], [("a", "b", sign * 0.06)]), 0.01
            ).choices(0.0),
            "a",
            judged=True,
        )
        for sign in (-1, 0, 1)
    }
    assert found[1] < found[0] < found[-1]


def test_a_better_answer_in_hand_makes_a_judged_call_worth_more_and_an_unseen_one_the_same():
    candidates = [Candidate("a", 0.5, 0.001, 0.0), Candidate("b", 0.8, 0.003, 0.0)]
    outlook = Outlook(candidates, plain(0.3, candidates), 0.01)
    poor, good = outlook.choices(0.1), outlook.choices(0.7)
    for tier in ("a", "b"):
        assert worth(poor, tier, judged=False) == worth(good, tier, judged=False)
        assert worth(poor, tier, judged=True) < worth(good, tier, judged=True)


@given(situation=situations(), tier=st.sampled_from(TIERS), off=st.floats(0.0, 0.003))
@settings(max_examples=30, deadline=None)
def test_a_cheaper_tier_gains_all_that_it_is_cheaper_and_no_other_gains_more(situation, tier, off):
    candidates, beliefs, best = situation
    cheaper = [replace(c, price=c.price - off) if c.tier == tier else c for c in candidates]
    before = Outlook(candidates, beliefs, 0.01).choices(best)
    for old, new in zip(before, Outlook(cheaper, beliefs, 0.01).choices(best), strict=True):
        gained = new.worth - old.worth
        if new.candidate.tier == tier:
            assert gained == pytest.approx(off, abs=1e-12)
        else:
            assert -1e-12 <= gained <= off + 1e-12
