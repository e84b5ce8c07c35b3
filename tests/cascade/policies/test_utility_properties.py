"""What holds of the utility policy for whatever is believed and quoted."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.policies.utility import Option
from cascade.posterior import Unfitted
from cascade.quote import Quote, Shared
from cascade.types import Beliefs, Budget
from tests.builders import request
from tests.cascade.policies.weighing import failed, judged, unseen, utility

NAMES = ("a", "b", "c", "d")
CHANCES = st.floats(0.0, 1.0)
CLEARLY = 0.01 * 0.002 + 1e-9
"""A lead that is not given up for what holding an answer has to add."""

DOLLARS = st.integers(0, 5000).map(lambda micro: Decimal(micro).scaleb(-6))


@st.composite
def quotes(draw, tiers):
    return {
        tier: Quote(
            tier=tier,
            dollars=draw(DOLLARS),
            shared=Shared(credit=draw(st.floats(0.0, 0.002))),
            judge_dollars=draw(st.sampled_from([Decimal(0), Decimal("0.0002")])),
            seconds=draw(st.sampled_from([None, 0.5, 3.0])),
        )
        for tier in tiers
    }


@st.composite
def worlds(draw, most=3, **options):
    """A policy, what is believed, and what is quoted."""
    tiers = NAMES[: draw(st.integers(1, most))]
    judges = [draw(st.sampled_from([None, "sound"])) for _ in tiers]
    policy = utility(
        *(Option(tier=tier, judge=judge) for tier, judge in zip(tiers, judges, strict=True)),
        **{"second_usd": 0.0001, **options},
    )
    mean = {tier: draw(CHANCES) for tier in tiers}
    kappa = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    beliefs = Unfitted(kappa=kappa).before(Beliefs(mean=mean))
    return policy, beliefs, draw(quotes(tiers))


FATES = st.sampled_from(["fails", "cannot tell", 0.0, 0.2, 0.5, 0.8, 1.0])


def called(step, index, fate):
    """A call that came to what fate says; of an answer that nobody judges, only whether it came."""
    if fate == "fails":
        return failed(step.tier, index, step.judge)
    if step.judge is None:
        return unseen(step.tier, index)
    return judged(None if fate == "cannot tell" else fate, tier=step.tier, index=index)


@given(
    world=worlds(most=4),
    fates=st.lists(FATES, min_size=4, max_size=4),
    wanted=st.none() | CHANCES,
    served_by=st.sampled_from(["", *NAMES]),
)
@settings(max_examples=60, deadline=None)
def test_it_asks_no_tier_twice_ends_and_takes_an_answer_if_there_is_one(
    world, fates, wanted, served_by
):
    policy, prior, priced = world
    asked = request(served_by=served_by, budget=Budget(quality=wanted))
    posterior, beliefs, calls = Unfitted(kappa=0.3), prior, []
    while (plan := policy.decide(asked, beliefs, priced, calls)).steps:
        step = plan.steps[0]
        assert step in policy.steps
        assert step.tier not in {call.step.tier for call in calls}
        calls.append(called(step, len(calls), fates[len(calls)]))
        beliefs = posterior.after(prior, [(c.step.tier, c.verdict) for c in calls])
        if calls[-1].answered and step.judge is None:
            last = policy.decide(asked, beliefs, priced, calls)
            assert last.accept == calls[-1].index, "what nobody judges went out already"
    assert calls
    answered = [call.index for call in calls if call.answered]
    assert plan.accept in answered if answered else plan.accept is None


def first(policy, beliefs, priced):
    (step,) = policy.decide(request(), beliefs, priced, []).steps
    return step


@given(world=worlds(), place=st.integers(0, 2), more=st.floats(0.0, 0.003))
@settings(deadline=None)
def test_a_credit_never_makes_a_tier_less_likely_to_be_asked(world, place, more):
    policy, beliefs, priced = world
    tier = NAMES[place % len(priced)]
    was = priced[tier]
    credited = {**priced, tier: replace(was, shared=Shared(credit=was.shared.credit + more))}
    before, after = (policy.decide(request(), beliefs, each, []) for each in (priced, credited))
    assert after.leads[tier] >= before.leads[tier] - 1e-12
    if before.leads[tier] > CLEARLY:
        assert before.steps[0].tier == after.steps[0].tier == tier


@given(world=worlds(), power=st.integers(-6, 6))
@settings(deadline=None)
def test_what_a_dollar_is_called_changes_nothing(world, power):
    policy, beliefs, priced = world
    times = 2.0**power  # exact, so that no tie is broken by rounding
    options = [Option(tier=s.tier, judge=s.judge) for s in policy.steps]
    tiers = {option.tier: option for option in reversed(options)}
    tiers = [tiers[name] for name in priced]
    other = utility(*tiers, quality_usd=0.01 * times, second_usd=0.0001 * times)
    scaled = {
        tier: replace(
            each,
            dollars=each.dollars * Decimal(times),
            shared=Shared(credit=each.shared.credit * times),
            judge_dollars=each.judge_dollars * Decimal(times),
        )
        for tier, each in priced.items()
    }
    assert first(other, beliefs, scaled) == first(policy, beliefs, priced)


@given(means=st.lists(CHANCES, min_size=2, max_size=3), data=st.data(), times=st.floats(1.0, 30.0))
@settings(deadline=None)
def test_where_quality_is_worth_more_the_first_choice_is_expected_to_give_no_less(
    means, data, times
):
    """Of tiers that nobody judges, whose first choice is all there is."""
    mean = dict(zip(NAMES, means, strict=False))
    beliefs, priced = Beliefs(mean=mean), data.draw(quotes(mean))
    unjudged = [Option(tier=name) for name in mean]

    def expected(usd):
        return mean[first(utility(*unjudged, quality_usd=usd), beliefs, priced).tier]

    assert expected(0.01 * times) >= expected(0.01) - 1e-9
