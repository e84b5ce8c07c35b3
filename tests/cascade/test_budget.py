"""Requests that say what they may cost, how long they may take, and how good they must be."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cascade.audit import record
from cascade.backends.scripted import Script
from cascade.candidates import Candidates
from cascade.errors import JudgeError
from cascade.experiments import Arm
from cascade.pace import Pace
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import Rung
from cascade.pricing import PriceCard, Rates
from cascade.quote import Quote
from cascade.result import Delta, Finished
from cascade.types import Budget, ChatRequest, Cost, Outcome, Step, Usage
from tests import builders
from tests.engines import Bench, FixedJudge, card, ladder, request, tier

DEAR = card("10", "1", "20")
STUCK = Script(text="never", first_token_seconds=30)
USAGE = Usage(input=100, cache_read=0, output=10)
STEPS = [Step(tier="small", judge="told"), Step(tier="large")]
ONLY_LARGE = Arm(name=None, policy=FixedPolicy(name="f", tier="large"))


def allowed(dollars: str | None = None, **limits: Any) -> ChatRequest:
    """A request that is quoted as 4 + 256 tokens: $0.000516 of small, $0.00516 of large."""
    budget = Budget(dollars=None if dollars is None else Decimal(dollars), **limits)
    return replace(request(), budget=budget)


def bench(small: Script | str = "maybe five", large: Script | str = "four", **parts: Any) -> Bench:
    parts.setdefault("judge", FixedJudge(0.3))
    return Bench(tier("small", small), tier("large", large, prices=DEAR), **parts)


def candidates(*quotes: Quote) -> Candidates:
    them = Candidates(steps=STEPS)
    for quote in quotes:
        them.add(quote)
    return them


def quoted(name: str, dollars: str | None = "0.001", seconds: float | None = None) -> Quote:
    return Quote(tier=name, dollars=dollars and Decimal(dollars), seconds=seconds)


# what fits


@pytest.mark.parametrize(
    ("quote", "budget", "why"),
    [
        (quoted("large"), Budget(), None),
        (quoted("large"), Budget(quality=1.0), None),
        (quoted("large"), Budget(dollars=Decimal("0.001")), None),
        (
            quoted("large"),
            Budget(dollars=Decimal("0.00099")),
            "is expected to cost $0.001, and $0.00099 is left",
        ),
        (
            quoted("large", None),
            Budget(dollars=Decimal(1)),
            "has no known price to hold against the $1 allowed",
        ),
        (quoted("large", None), Budget(seconds=5.0), None),
        (quoted("large", seconds=3.0), Budget(seconds=5.0), None),
        (
            quoted("large", seconds=3.01),
            Budget(seconds=5.0),
            "is expected to take 3.01 s, and 3 s is left",
        ),
        (quoted("large"), Budget(seconds=2.0), "cannot begin, as the 2 s allowed are over"),
    ],
)
def test_a_call_that_does_not_fit_is_left_out_with_the_reason(quote, budget, why):
    them = candidates(quote)
    them.hold_to(budget, [], 2.0)
    assert them.unfit == ({} if why is None else {"large": why})
    assert them.over_budget is (why is not None)
    assert ("large" in them.quotes) is (why is None)


def test_what_judging_it_is_expected_to_cost_is_part_of_a_call_that_is_judged_in_any_case():
    dear = replace(quoted("small"), judge_dollars=Decimal("0.002"))
    budget = Budget(dollars=Decimal("0.0025"))
    them = candidates(dear)
    them.hold_to(budget, [], 0.0)
    assert them.unfit == {"small": "is expected to cost $0.003, and $0.0025 is left"}
    unseen = Candidates(steps=[*STEPS, Step(tier="small")])
    unseen.add(dear)
    unseen.hold_to(budget, [], 0.0)
    assert not unseen.unfit


def test_what_was_spent_counts():
    them = candidates(quoted("small"), quoted("large"))
    spent = builders.attempt(cost=Cost(output=Decimal("0.002")))
    them.hold_to(Budget(dollars=Decimal("0.0025")), [spent], 0.0)
    assert them.unfit == {"large": "is expected to cost $0.001 more, and $0.0005 is left"}


def test_what_was_spent_and_is_not_known_cannot_be_held():
    them = candidates(quoted("small"), quoted("large"))
    them.hold_to(Budget(dollars=Decimal(1)), [builders.attempt(cost=None)], 0.0)
    assert them.unfit == {"large": "is not asked, as what was spent of the $1 allowed is not known"}


def test_a_tier_that_the_policy_will_not_ask_again_is_not_spoken_of():
    them = candidates(quoted("small"), quoted("large"), quoted("other"))
    them.hold_to(Budget(seconds=1.0), [builders.attempt(tier="small")], 2.0)
    assert list(them.unfit) == ["large"]


def test_news_are_told_once():
    them = candidates(quoted("small"), quoted("large"))
    them.leave_out("large", "is away")
    them.leave_out("stranger", "is no tier of the policy")
    assert them.news() == "large is away"
    assert them.news() == ""
    assert them.why() == "large is away"


# dollars


async def test_a_tier_that_is_too_dear_is_not_asked_and_the_audit_row_says_why():
    asked = bench()
    result = await asked.run(allowed("0.001"))
    assert not asked.asked("large")
    assert (result.completion.text, result.degraded) == ("maybe five", True)
    assert (
        "large is expected to cost $0.00516, and $0.001 is left"
        in record(result).attempts[0].reason
    )


async def test_what_the_first_answer_cost_decides_on_the_second():
    wordy = Script(text="a", usage=Usage(input=4, cache_read=0, output=3000))
    asked = bench(wordy)
    result = await asked.run(allowed("0.006"))
    assert not asked.asked("large")
    assert result.degraded
    assert result.reason.endswith("large is expected to cost $0.00516 more, and $0 is left")


async def test_an_accepted_answer_says_nothing_of_what_is_left_out():
    wordy = Script(text="a", usage=Usage(input=4, cache_read=0, output=3000))
    result = await bench(wordy, judge=FixedJudge(0.9)).run(allowed("0.006"))
    assert not result.degraded
    assert "large" not in result.reason


async def test_a_first_tier_that_is_too_dear_is_passed_over():
    first_large = ladder(Rung(tier="large", judge="told", accept_at=0.8), Rung(tier="small"))
    result = await bench(arm=first_large).run(allowed("0.001"))
    assert result.completion.tier == "small"
    assert [a.step.tier for a in result.attempts] == ["small"]


async def test_a_budget_too_small_for_any_call_is_refused_with_what_each_would_cost():
    events = await bench().events(allowed("0.0001"))
    assert [type(event) for event in events] == [Finished]
    error = events[0].result.error
    assert (error.type, error.status, error.code) == ("BudgetError", 400, "budget_too_small")
    assert error.message == (
        "the budget is too small for any call: "
        "small is expected to cost $0.000516, and $0.0001 is left; "
        "large is expected to cost $0.00516, and $0.0001 is left"
    )


async def test_a_tier_without_a_price_is_not_asked_within_a_budget():
    unpriced = tier("large", prices=PriceCard(rates=Rates()))
    asked = Bench(tier("small"), unpriced, arm=ONLY_LARGE)
    assert (await asked.run()).completion.tier == "large"
    assert "has no known price" in (await asked.run(allowed("1"))).error.message


async def test_a_judge_that_does_not_say_what_it_cost_ends_the_spending():
    asked = bench(judge=FixedJudge(JudgeError("no")))
    result = await asked.run(allowed("1"))
    assert not asked.asked("large")
    assert "what was spent of the $1 allowed is not known" in result.reason


async def test_a_stand_in_for_a_tier_that_is_too_dear_is_degraded():
    policy = FixedPolicy(name="f", tier="large", fallback=["small"])
    result = await bench(arm=Arm(name=None, policy=policy)).run(allowed("0.001"))
    assert (result.completion.tier, result.degraded) == ("small", True)
    assert result.reason == "small stands in for large, which may not be asked"


async def test_a_ladder_that_asks_a_tier_twice_stops_in_between():
    twice = ladder(
        Rung(tier="small", judge="told", accept_at=0.8),
        Rung(tier="small", judge="told", accept_at=0.7),
        Rung(tier="large"),
    )
    asked = bench(Script(text="a", usage=Usage(input=4, cache_read=0, output=200)), arm=twice)
    result = await asked.run(allowed("0.0006"))
    assert len(asked.asked("small")) == 1
    assert not asked.asked("large")
    assert (result.completion.tier, result.degraded) == ("small", True)


# seconds


async def test_a_call_that_is_under_way_when_the_time_is_over_is_cut_and_paid_for():
    events = await bench(large=STUCK).events(allowed(seconds=0.5))
    result = events[-1].result
    assert (result.completion.text, result.degraded, result.cancelled) == (
        "maybe five",
        True,
        False,
    )
    cut = result.attempts[-1]
    assert (cut.outcome, cut.error.code) == (Outcome.CANCELLED, "deadline_exceeded")
    assert cut.usage_estimated
    assert cut.cost is not None
    assert result.seconds < 5


async def test_a_held_answer_is_cut_and_without_another_that_is_a_504():
    events = await bench(Script(text="a b c", token_seconds=30)).events(allowed(seconds=0.5))
    result = events[-1].result
    assert not [event for event in events if isinstance(event, Delta)]
    assert result.completion is None
    assert (result.error.type, result.error.status) == ("DeadlineError", 504)
    assert result.error.code == "deadline_exceeded"
    assert "large cannot begin, as the 0.5 s allowed are over" in result.error.message
    assert result.attempts[0].completion.text == "a"
    assert result.cost == result.attempts[0].cost
    assert len(result.attempts) == 1


async def test_a_live_answer_that_has_not_begun_is_cut():
    result = await bench(large=STUCK, arm=ONLY_LARGE).run(allowed(seconds=0.05))
    assert result.error.code == "deadline_exceeded"


async def test_a_live_answer_that_has_begun_is_not_cut():
    slow = Script(text="a b", token_seconds=0.35)
    result = await bench(large=slow, arm=ONLY_LARGE).live(allowed(seconds=0.3))
    assert result.completion.text == "a b"
    assert result.seconds > 0.3
    assert not result.degraded


async def test_a_whole_answer_is_cut_by_the_deadline_since_nothing_of_it_was_sent():
    slow = Script(text="a b", token_seconds=0.35)
    result = await bench(large=slow, arm=ONLY_LARGE).run(allowed(seconds=0.3))
    assert result.error.code == "deadline_exceeded"
    assert result.released_characters == 0
    assert result.attempts[0].usage_estimated


async def test_no_call_is_begun_that_is_not_expected_to_end_in_time():
    asked = bench(judge=FixedJudge(0.3))
    pace = asked.engine.forecast.pace
    for name, seconds in (("small", 0.2), ("large", 20.0)):
        completion = builders.completion(usage=USAGE)
        pace.observe(
            builders.attempt(
                tier=name, completion=completion, first_token_seconds=seconds / 2, seconds=seconds
            )
        )
    result = await asked.run(allowed(seconds=10.0))
    assert not asked.asked("large")
    assert (result.completion.tier, result.degraded) == ("small", True)
    assert "large is expected to take" in result.attempts[0].reason


async def test_a_tier_whose_speed_is_not_known_may_begin():
    asked = bench()
    assert isinstance(asked.engine.forecast.pace, Pace)
    assert (await asked.run(allowed(seconds=10.0))).completion.tier == "large"


async def test_no_time_at_all_is_too_small_a_budget():
    result = await bench().run(allowed(seconds=1e-9))
    assert (result.error.status, result.error.code) == (400, "budget_too_small")


async def test_a_judge_that_is_at_work_when_the_time_is_over_cannot_tell():
    class Slow(FixedJudge):
        async def judge(self, request, completion):
            await asyncio.sleep(30)
            raise AssertionError("it is not waited for")

    asked = bench(judge=Slow(0.9))
    result = await asked.run(allowed(seconds=0.5))
    judged = result.attempts[1]
    assert (judged.verdict.score, judged.cost) == (None, None)
    assert "over before it could tell" in judged.verdict.reason
    assert (result.completion.text, result.degraded) == ("maybe five", True)
    assert not asked.asked("large")


async def test_a_timeout_inside_a_backend_or_a_judge_is_not_taken_for_the_deadline():
    class Broken(FixedJudge):
        async def judge(self, request, completion):
            raise TimeoutError("a bug")

    with pytest.raises(TimeoutError, match="a bug"):
        await bench(judge=Broken(0.9)).run(allowed(seconds=10.0))


async def test_a_client_that_leaves_before_the_deadline_is_cancelled():
    asked = bench(STUCK)
    task = asyncio.create_task(asked.run(allowed(seconds=30.0)))
    while not asked.asked("small"):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = asked.sink.results
    assert result.cancelled
    assert result.attempts[0].error is None


async def test_failures_before_the_deadline_are_told_with_what_was_not_asked():
    asked = bench(Script(error="BackendServerError"))
    result = await asked.run(allowed("0.001"))
    assert (result.error.type, result.error.status) == ("NoAnswerError", 502)
    assert "small: BackendServerError" in result.error.message
    assert "large is expected to cost" in result.error.message


# quality


async def test_the_wanted_quality_raises_the_threshold():
    judge = FixedJudge(0.85)
    assert (await bench(judge=judge).run(allowed(quality=0.8))).completion.tier == "small"
    result = await bench(judge=judge).run(allowed(quality=0.9))
    assert result.completion.tier == "large"
    assert result.attempts[0].threshold == 0.9
    assert "is below 0.900" in result.attempts[2].reason


async def test_the_wanted_quality_never_lowers_the_threshold():
    result = await bench(judge=FixedJudge(0.7)).run(allowed(quality=0.1))
    assert (result.completion.tier, result.attempts[0].threshold) == ("large", 0.8)


async def test_the_best_answer_below_the_wanted_quality_is_degraded():
    judged = ladder(
        Rung(tier="small", judge="told", accept_at=0.5),
        Rung(tier="large", judge="told", accept_at=0.5),
    )
    result = await bench(judge=FixedJudge(0.8, 0.7), arm=judged).run(allowed(quality=0.9))
    assert (result.completion.tier, result.degraded) == ("small", True)


async def test_a_fixed_policy_says_that_nothing_judged_its_answer():
    result = await bench(arm=ONLY_LARGE).run(allowed(quality=0.9))
    assert not result.degraded
    assert result.reason == "always large; nothing judged it against the quality 0.9 wanted"
