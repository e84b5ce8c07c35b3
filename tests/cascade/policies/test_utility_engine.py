"""The utility policy through an engine: scripted models, real quotes, what is warm included."""

from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.audit import record
from cascade.backends.scripted import Script
from cascade.caches import CacheCard
from cascade.errors import BackendUnreachableError, JudgeError
from cascade.experiments import Arm
from cascade.policies.utility import Option
from cascade.posterior import Unfitted
from cascade.types import Budget, ChatRequest, Cost, Kind, Outcome, Usage
from tests.cascade.policies.weighing import utility
from tests.engines import Bench, FixedJudge, card, tier

LONG = "These are the rules of the house, and every one of them is to be kept. " * 100
KEEPS = CacheCard(kind="ttl", ttl_seconds=300.0)
SMALL = card("0.1", "0.01", "0.2")
LARGE = card("2", "0.2", "4")


def arm(*tiers, prior, kappa=0.4, **options):
    tiers = tiers or (Option(tier="small", judge="told"), Option(tier="large"))
    policy = utility(*tiers, **options)
    return Arm(name=None, policy=policy, posterior=Unfitted(kappa=kappa), prior=prior)


BETWEEN = {"small": 0.75, "large": 0.95}


def bench(*scores, prior=BETWEEN, small=("ok",), large=("better",), judge=None, **options):
    return Bench(
        tier("small", *small, prices=SMALL, cache=KEEPS),
        tier("large", *large, prices=LARGE, cache=KEEPS),
        judge=judge or FixedJudge(*scores),
        arm=arm(prior=prior, **options),
    )


def turn(number, **more):
    """The number-th turn of one conversation, whose history grows."""
    said = [{"role": "system", "content": LONG}]
    for i in range(number):
        said += [{"role": "user", "content": f"ask {i}"}, {"role": "assistant", "content": "ok"}]
    said.append({"role": "user", "content": f"ask {number}"})
    return ChatRequest(id=f"r{number}", messages=said, session="s", unit="s", **more)


def answers(result):
    return [attempt for attempt in result.attempts if attempt.kind is Kind.ANSWER]


async def test_the_judge_gets_its_upgrade_though_small_is_warm_and_large_has_never_been_asked():
    run = bench(0.95, 0.95, 0.95, 0.1, quality_usd=0.02)
    for number in range(3):
        result = await run.run(turn(number))
        assert [a.step.tier for a in answers(result)] == ["small"]
    small, large = answers(await run.run(turn(3)))
    assert small.quote.warm_tokens > 5 * small.quote.cold_tokens
    assert small.quote.cold_premium < small.quote.dollars
    assert (large.step.tier, large.quote.warm_tokens) == ("large", 0)
    assert large.quote.cold_premium > 10 * small.quote.dollars
    assert (small.outcome, large.outcome) == (Outcome.REJECTED, Outcome.ACCEPTED)


async def test_the_audit_row_says_why_it_escalated():
    result = await bench(0.1, quality_usd=0.02).run(turn(0))
    row = record(result)
    small, judge, large = row.attempts
    assert small.reason.startswith("asks small, judged by told: worth $0.0")
    assert "being right with 0.750 for $0.0" in small.reason
    assert "; large is worth $0.0" in small.reason
    assert (judge.kind, judge.score) == ("judge", 0.1)
    assert large.reason.startswith("told gives small's answer 0.100; asks large, unseen: worth $0.")
    assert large.reason.endswith("; the answer in hand is worth $0.002")
    # With the large one worth so much, the small one's answer would have had to be that good.
    assert small.threshold == pytest.approx(0.95 - large.quoted_pico * 1e-12 / 0.02, abs=0.05)
    assert row.reason == "large's answer is taken unseen, being right with 0.950"


async def test_warmth_moves_the_border_between_the_models_and_the_conversation_stays_warm():
    prior = {"small": 0.8, "large": 0.9}
    cold = bench(0.9, prior=prior, kappa=0.0, quality_usd=0.01)
    # Cold, the large one's prompt costs more than the tenth of a unit that it is better.
    assert [a.step.tier for a in answers(await cold.run(turn(0)))] == ["small"]
    warm = bench(0.9, prior={"small": 0.1, "large": 0.9}, kappa=0.0, quality_usd=0.01)
    assert [a.step.tier for a in answers(await warm.run(turn(0)))] == ["large"]
    warm.arm = arm(prior=prior, kappa=0.0, quality_usd=0.01)
    (stays,) = answers(await warm.run(turn(1)))
    assert stays.step.tier == "large"
    assert stays.quote.warm_tokens > 5 * stays.quote.cold_tokens


async def test_of_several_answers_every_one_has_to_be_good_and_all_are_paid_for():
    asked = turn(0, params={"n": 3, "max_tokens": 10})
    three = Script(text="ok", usage=Usage(input=2000, cache_read=0, output=30))
    run = bench(0.9, 0.1, 0.9, small=(three,), quality_usd=0.02)
    small, large = answers(await run.run(asked))
    assert small.quote.expected_output_tokens == 30
    assert small.verdict.score == 0.1
    assert large.outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("said", [None, JudgeError("no idea")])
async def test_a_judge_that_fails_or_cannot_tell_is_no_acceptance(said):
    small, large = answers(await bench(said, quality_usd=0.02).run(turn(0)))
    assert (small.outcome, large.outcome) == (Outcome.REJECTED, Outcome.ACCEPTED)
    assert large.step.tier == "large"


async def test_a_tier_that_does_not_fit_the_budget_is_not_asked_and_the_row_says_so():
    asked = turn(0, budget=Budget(dollars=Decimal("0.0005")))
    result = await bench(0.1, quality_usd=0.02).run(asked)
    (only,) = answers(result)
    assert only.step.tier == "small"
    assert "large is expected to cost $0.0" in only.reason


async def test_a_tier_that_fails_is_followed_by_the_other():
    down = Script(error=BackendUnreachableError.__name__)
    result = await bench(0.9, small=(down,), quality_usd=0.02).run(turn(0))
    assert result.completion.tier == "large"
    assert answers(result)[1].reason.startswith("small failed; asks large")
    both = await bench(0.9, small=(down,), large=(down,), quality_usd=0.02).run(turn(0))
    assert both.completion is None
    assert both.reason == "large failed; no tier is left to ask"


class Dear(FixedJudge):
    """A judge that costs a cent."""

    async def judge(self, request, completion):
        said = await super().judge(request, completion)
        return replace(said, cost=Cost(output=Decimal("0.01")))


async def test_a_judge_s_own_bill_is_expected_the_next_time():
    run = bench(quality_usd=0.02, judge=Dear(0.95))
    (first,) = answers(await run.run(turn(0)))
    assert (first.step.judge, first.quote.judge_dollars) == ("told", 0)
    (second,) = answers(await run.run(turn(1)))
    assert second.step.judge is None, "half a unit of quality is more than it can save"


@pytest.mark.parametrize("tiers", [1, 2, 3, 4])
async def test_of_any_number_of_tiers_each_is_asked_once_while_no_answer_is_good(tiers):
    names = ["t1", "t2", "t3", "t4"][:tiers]
    made = [tier(name, name, prices=card(str(10**i))) for i, name in enumerate(names)]
    chosen = arm(
        *(Option(tier=name, judge="told") for name in names),
        prior={name: 0.5 + 0.1 * i for i, name in enumerate(names)},
        kappa=0.5,
        quality_usd=100.0,
    )
    result = await Bench(*made, judge=FixedJudge(0.0), arm=chosen).run(turn(0))
    asked = [a.step.tier for a in answers(result)]
    assert sorted(asked) == names
    assert result.completion.tier == asked[-1]
