import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import EstimatorError, JudgeError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import LadderPolicy, Rung
from cascade.result import Delta
from cascade.types import FREE, Cost, Kind, Outcome, Usage
from tests.engines import Bench, FixedJudge, card, ladder, request, tier


def text(events):
    return "".join(
        (choice.get("delta") or {}).get("content") or ""
        for event in events
        if isinstance(event, Delta)
        for choice in event.choices
    )


async def test_a_confident_answer_of_the_small_tier_is_accepted():
    bench = Bench(tier("small", "four"), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run()
    assert result.completion.text == "four"
    assert result.completion.tier == "small"
    assert result.completion.model == "small-model"
    assert [a.outcome for a in result.attempts if a.kind is Kind.ANSWER] == [Outcome.ACCEPTED]
    assert result.attempts[0].threshold == 0.8
    assert "0.900" in result.reason
    assert not bench.asked("large")
    assert not result.degraded


async def test_a_doubtful_answer_is_escalated_and_both_calls_are_paid_for():
    usage = Usage(input=100, cache_read=0, output=10)
    bench = Bench(
        tier("small", Script(text="five", usage=usage), prices=card("1", "0.1", "2")),
        tier("large", Script(text="four", usage=usage), prices=card("10", "1", "20")),
        judge=FixedJudge(0.3),
    )
    result = await bench.run()
    assert result.completion.text == "four"
    answers = [a for a in result.attempts if a.kind is Kind.ANSWER]
    assert [a.outcome for a in answers] == [Outcome.REJECTED, Outcome.ACCEPTED]
    assert answers[0].cost.total == Decimal("0.00012")
    assert answers[1].cost.total == Decimal("0.0012")
    assert result.cost.total == Decimal("0.00132")
    assert "is below 0.800" in answers[1].reason


async def test_a_score_equal_to_the_threshold_is_accepted():
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.8)).run()
    assert result.completion.tier == "small"


async def test_a_judge_that_cannot_tell_does_not_accept():
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(None)).run()
    assert result.completion.tier == "large"
    assert "cannot tell" in result.attempts[2].reason


async def test_a_judge_that_fails_does_not_accept_and_is_recorded():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(JudgeError("no idea")))
    result = await bench.run()
    assert result.completion.tier == "large"
    judge = result.attempts[1]
    assert (judge.kind, judge.outcome) == (Kind.JUDGE, Outcome.JUDGE_ERROR)
    assert judge.error.message == "no idea"


async def test_a_bug_in_a_judge_is_raised_and_still_audited():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        await bench.run()
    [result] = bench.sink.results
    assert result.error.type == "ZeroDivisionError"
    assert result.completion is None
    assert not result.cancelled


async def test_a_failing_small_tier_falls_through_to_the_large_one():
    small = tier("small", Script(error="BackendUnreachableError"))
    result = await Bench(small, tier("large", "four"), judge=FixedJudge(0.9)).run()
    assert result.completion.tier == "large"
    assert result.attempts[0].outcome is Outcome.BACKEND_ERROR
    assert result.attempts[0].cost == FREE
    assert not result.degraded


async def test_a_refused_request_is_an_invalid_attempt():
    small = tier("small", Script(error="BackendRefusedError"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].outcome is Outcome.INVALID


async def test_the_rejected_answer_is_returned_degraded_when_the_last_tier_fails():
    large = tier("large", Script(error="BackendTimeoutError"))
    bench = Bench(tier("small", "maybe five"), large, judge=FixedJudge(0.3))
    events = await bench.events()
    result = events[-1].result
    assert result.completion.text == "maybe five"
    assert result.degraded
    assert text(events) == "maybe five"
    assert {e.tier for e in events if isinstance(e, Delta)} == {"small"}


async def test_the_rejected_answer_is_returned_degraded_when_the_last_tier_breaks_off():
    large = tier("large", Script(text="a b c d", cut_after=2))
    result = await Bench(tier("small", "maybe five"), large, judge=FixedJudge(0.3)).run()
    assert (result.completion.text, result.degraded, result.error) == ("maybe five", True, None)
    assert result.released_characters == len("maybe five")


async def test_a_whole_answer_that_breaks_off_leaves_it_to_the_next_tier():
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small", fallback=["large"]))
    small = tier("small", Script(text="a b c d", cut_after=1))
    result = await Bench(small, tier("large", "four"), arm=arm).run()
    assert result.completion.text == "four"
    assert result.attempts[0].outcome is Outcome.BACKEND_ERROR


async def test_time_in_a_judge_that_asks_a_model_is_not_our_own():
    class Slow(FixedJudge):
        async def judge(self, request, completion):
            await asyncio.sleep(0.2)
            verdict = await super().judge(request, completion)
            return replace(verdict, cost=None)

    result = await Bench(tier("small"), tier("large"), judge=Slow(0.9)).run()
    assert result.seconds > 0.2
    assert result.overhead_seconds < 0.2


async def test_nothing_answered_is_a_result_with_an_error_and_is_audited():
    bench = Bench(
        tier("small", Script(error="BackendConnectionError")),
        tier("large", Script(error="BackendOverloadedError")),
        judge=FixedJudge(0.9),
    )
    result = await bench.run()
    assert result.completion is None
    assert result.error.status == 429
    assert "small:" in result.error.message
    assert "large:" in result.error.message
    assert bench.sink.results == [result]


async def test_every_answered_request_is_audited_once():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run()
    assert bench.sink.results == [result]


async def test_with_n_every_choice_must_pass():
    judge = FixedJudge(0.9, 0.2)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert len(judge.seen) == 2
    assert result.completion.tier == "large"
    judge = FixedJudge(0.9, None)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert result.attempts[0].verdict.score is None
    judge = FixedJudge(0.9, 0.85)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert result.completion.tier == "small"
    assert [choice.text for choice in result.completion.choices] == ["x", "x"]


@pytest.mark.parametrize(
    ("error", "free"),
    [
        ("BackendUnreachableError", True),
        ("BackendOverloadedError", True),
        ("BackendServerError", True),
        ("BackendRefusedError", True),
        ("BackendTimeoutError", False),
        ("BackendConnectionError", False),
        ("BackendProtocolError", False),
    ],
)
async def test_a_failed_call_is_free_only_if_the_model_cannot_have_worked(error, free):
    bench = Bench(tier("small", Script(error=error)), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run(request("x" * 3996))
    first = result.attempts[0]
    assert first.cost == (FREE if free else Cost(input=Decimal("0.001")))
    assert first.usage_estimated is not free
    assert (first.completion is None) is free
    assert result.cost == sum((a.cost for a in result.attempts), FREE)


async def test_a_judge_that_fails_says_what_it_spent():
    for cost in (FREE, None):
        judge = FixedJudge(JudgeError("no", cost=cost))
        result = await Bench(tier("small"), tier("large"), judge=judge).run()
        assert result.attempts[1].cost == cost
        assert (result.cost is None) is (cost is None)


async def test_a_model_without_a_name_is_called_by_its_tier():
    nameless = replace(tier("small"), backend=ScriptedBackend(answers=["a"], model=""))
    bench = Bench(nameless, tier("large"), judge=FixedJudge(0.9))
    events = await bench.events()
    assert {event.model for event in events if isinstance(event, Delta)} == {"small"}
    assert events[-1].result.completion.model == "small"


async def test_an_unknown_price_makes_the_cost_unknown():
    small = tier("small", Script(text="a", usage=None))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cost is None
    assert result.cost is None


async def test_the_cold_premium_is_what_a_warm_prompt_would_have_saved():
    usage = Usage(input=900, cache_read=100, output=10)
    small = tier("small", Script(text="a", usage=usage), prices=card("1", "0.1", "2"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cold_premium == 900 * Decimal("0.9") / 1_000_000
    unknown = tier("small", Script(text="a", usage=Usage(input=900, output=10)))
    result = await Bench(unknown, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cold_premium is None


class Failing:
    name = "failing"
    asks = None

    def estimate(self, requests):
        raise EstimatorError("no model")


async def test_an_estimator_that_fails_leaves_the_flagged_prior():
    arm = ladder(Rung(tier="small", judge="told", accept_at=0.8), Rung(tier="large"))
    arm = Arm(name=None, policy=arm.policy, estimator=Failing())
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.9), arm=arm).run()
    assert result.beliefs.flags == {"fallback"}
    assert result.beliefs.mean == {"small": 0.5, "large": 0.5}


async def test_a_policy_sees_beliefs_after_the_verdict_and_the_log_those_before_it():
    policy = LadderPolicy(
        name="p", steps=[Rung(tier="small", judge="told", accept_at=0.8), Rung(tier="large")]
    )
    seen = []
    decide = policy.decide

    class Spy:
        name, steps = policy.name, policy.steps

        def decide(self, request, beliefs, quotes, attempts):
            seen.append(dict(beliefs.mean))
            return decide(request, beliefs, quotes, attempts)

    arm = Arm(name=None, policy=Spy())
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.9), arm=arm).run()
    assert seen == [{"small": 0.5, "large": 0.5}, {"small": 0.9, "large": 0.5}]
    assert result.beliefs.mean == seen[0]


async def test_overhead_leaves_out_the_time_waited_for_models():
    small = tier("small", Script(text="a", first_token_seconds=0.05))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.seconds >= 0.05
    assert result.overhead_seconds < result.seconds - 0.045
    assert result.attempts[0].first_token_seconds >= 0.05


async def test_tool_calls_come_through_whole():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    small = tier("small", Script(text="", tool_calls=[call], finish_reason="tool_calls"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.completion.tool_calls == (call,)
    assert result.completion.finish_reason == "tool_calls"
