"""Requests that not every tier can serve."""

import pytest

from cascade.audit import record
from cascade.backends.scripted import Script
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.result import Finished
from cascade.types import FREE
from tests.engines import LOGPROBS_ONLY, Bench, FixedJudge, Greedy, request, tier


async def test_a_tier_that_cannot_serve_a_request_is_skipped_and_the_audit_row_says_why():
    bench = Bench(
        tier("small", "four", capabilities=LOGPROBS_ONLY), tier("large", "4"), judge=FixedJudge(0.9)
    )
    result = await bench.run(request(reasoning_effort="high"))
    assert result.completion.tier == "large"
    assert not bench.asked("small")
    assert not result.degraded
    [attempt] = record(result).attempts
    assert attempt.reason == "the first step of the ladder; small does not offer reasoning"
    assert attempt.quoted_pico


async def test_when_the_last_tier_is_out_a_rejected_answer_is_the_best_there_is():
    bench = Bench(tier("small", "four"), tier("large", context_tokens=3), judge=FixedJudge(0.1))
    result = await bench.run(request("one two three four"))
    assert result.completion.tier == "small"
    assert result.degraded
    assert "large has a window of 3 tokens" in result.attempts[0].reason
    assert not bench.asked("large")


async def test_a_stand_in_for_a_tier_that_cannot_serve_says_so_and_is_degraded():
    policy = FixedPolicy(name="always-small", tier="small", fallback=("large",))
    bench = Bench(
        tier("small", capabilities=LOGPROBS_ONLY), tier("large"), arm=Arm(name=None, policy=policy)
    )
    result = await bench.run(request(reasoning_effort="high"))
    assert result.completion.tier == "large"
    assert result.degraded
    assert result.reason == "large stands in for small, which may not be asked"


async def test_with_no_tier_left_the_client_is_told_what_was_missing_and_it_is_audited():
    bench = Bench(
        tier("small", capabilities=LOGPROBS_ONLY),
        tier("large", output_tokens=5),
        judge=FixedJudge(0.9),
    )
    events = await bench.events(request(reasoning_effort="high", max_tokens=6))
    assert [type(event) for event in events] == [Finished]
    result = events[0].result
    missing = "small does not offer reasoning; large answers with at most 5 tokens, not 6"
    assert result.error.type == "NoFitError"
    assert (result.error.status, result.error.code) == (400, "no_tier_fits")
    assert result.error.message == f"no tier can serve this request: {missing}"
    assert result.cost == FREE
    assert bench.sink.results == [result]
    row = record(result)
    assert (row.status, row.error_status, row.answers) == ("error", 400, 0)
    assert row.reason == f"no step of the ladder is left; {missing}"


async def test_only_the_policys_own_tiers_are_held_against_a_request():
    arm = Arm(name=None, policy=FixedPolicy(name="large", tier="large"))
    bench = Bench(tier("small", capabilities=LOGPROBS_ONLY), tier("large"), arm=arm)
    result = await bench.run(request(reasoning_effort="high"))
    assert result.attempts[0].reason == "always large"
    assert (result.reason, result.degraded) == ("always large", False)


async def test_a_failure_of_the_tiers_that_were_left_is_no_fault_of_the_clients():
    large = tier("large", Script(error="BackendServerError"))
    bench = Bench(tier("small", capabilities=LOGPROBS_ONLY), large, judge=FixedJudge(0.9))
    result = await bench.run(request(reasoning_effort="high"))
    assert (result.error.type, result.error.status) == ("NoAnswerError", 502)
    assert "small does not offer reasoning" in result.attempts[0].reason


async def test_a_policy_that_asks_a_tier_that_was_left_out_is_a_bug():
    bench = Bench(tier("small", capabilities=LOGPROBS_ONLY), arm=Arm(name=None, policy=Greedy()))
    with pytest.raises(RuntimeError, match="asks small, which was left out"):
        await bench.run(request(reasoning_effort="high"))


async def test_what_a_judge_needs_is_not_held_against_a_tier():
    small = tier("small", "four", capabilities=frozenset())
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9, logprobs=True)).run()
    assert result.completion.tier == "small"
