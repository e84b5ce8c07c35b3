"""What is counted of one result, known by hand."""

from decimal import Decimal

import pytest

from cascade.asking.calls import ask
from cascade.backends.scripted import Script
from cascade.types import Cost, Kind, Outcome, Step, Usage
from tests.builders import attempt, completion, cost, escalated, failed, result, usage
from tests.engines import request, tier
from tests.metrics import Read, counted, metrics


def test_requests_are_counted_by_how_they_were_decided_and_how_they_ended():
    told = counted(
        result(), result(), result(degraded=True), result(cancelled=True), result(experiment=None)
    )
    by = {"experiment": "auto", "policy": "default"}
    assert told("requests_total", **by, status="ok") == 2
    assert told("requests_total", **by, status="degraded") == 1
    assert told("requests_total", **by, status="cancelled") == 1
    assert told("requests_total", policy="default", experiment="", status="ok") == 1


def test_every_call_is_counted_by_what_became_of_it():
    told = counted(escalated(), result(attempts=(failed(),)))
    assert told("attempts_total", tier="small", kind="answer", outcome="rejected") == 1
    assert told("attempts_total", tier="small", kind="judge", outcome="done") == 1
    assert told("attempts_total", tier="large", kind="answer", outcome="accepted") == 1
    assert told("attempts_total", tier="small", kind="answer", outcome="backend_error") == 1


def test_dollars_are_added_up_where_they_are_known_and_calls_counted_where_not():
    spent = Cost(input=Decimal("0.25"), output=Decimal("0.5"))
    calls = (attempt(0, cost=spent), attempt(1, cost=spent), attempt(2, cost=None))
    told = counted(result(attempts=calls))
    assert told("cost_usd_total", tier="small", kind="answer") == 1.5
    assert told("cost_unknown_total", tier="small", kind="answer") == 1


def test_what_cold_prompts_cost_more_is_added_up():
    premiums = [Decimal("0.5"), None, Decimal("0.25")]
    calls = [attempt(i, cold_premium=each) for i, each in enumerate(premiums)]
    assert counted(result(attempts=calls))("cold_premium_usd_total", tier="small") == 0.75


def test_an_escalation_says_from_where_to_where_and_why():
    down = result(attempts=(failed(0), attempt(1, tier="large")))
    told = counted(escalated(), escalated(), down)
    way = {"from_tier": "small", "to_tier": "large"}
    assert told("escalations_total", **way, cause="rejected") == 2
    assert told("escalations_total", **way, cause="failed") == 1


def test_a_second_try_of_one_tier_is_no_escalation():
    twice = result(attempts=(failed(0), attempt(1)))
    assert not counted(twice).labels("escalations_total")


def answered(**used):
    return result(attempts=(attempt(completion=completion(usage=usage(**used))),))


def test_tokens_are_those_that_were_reported():
    told = counted(
        answered(input=40, cache_read=60, cache_write={"5m": 100}, output=12, reasoning=8),
        answered(input=10, cache_read=0, output=1),
    )
    assert told("prefill_tokens_total", tier="small") == 210
    assert told("decode_tokens_total", tier="small") == 21
    assert told("prefix_cache_hit_tokens_total", tier="small") == 60
    assert told("prefix_cache_miss_tokens_total", tier="small") == 150
    assert told("prefix_cache_unreported_total", tier="small") is None


def test_tokens_of_which_nobody_says_whether_they_were_cached_are_no_misses():
    told = counted(answered(input=40, cache_read=None))
    assert told("prefill_tokens_total", tier="small") == 40
    assert told("prefix_cache_miss_tokens_total", tier="small") is None
    assert told("prefix_cache_unreported_total", tier="small") == 1


def test_the_estimated_usage_of_a_call_that_was_cut_is_not_counted_as_reported():
    told = counted(result(attempts=(attempt(usage_estimated=True),)))
    assert told("prefill_tokens_total", tier="small") is None
    assert told("decode_tokens_total", tier="small") is None
    assert told("prefix_cache_unreported_total", tier="small") == 1


def test_the_wait_for_the_first_piece_is_in_its_bucket():
    told = counted(
        result(attempts=(attempt(first_token_seconds=0.05), attempt(1, first_token_seconds=0.3)))
    )
    assert told("ttft_ms_sum", tier="small") == pytest.approx(350)
    assert told("ttft_ms_bucket", tier="small", le="25.0") == 0
    assert told("ttft_ms_bucket", tier="small", le="50.0") == 1
    assert told("ttft_ms_bucket", tier="small", le="500.0") == 2


def test_a_call_that_never_answered_has_no_first_piece():
    assert not counted(result(attempts=(failed(),))).labels("ttft_ms_count")


def test_calls_that_did_not_wait_are_in_the_waits_and_those_never_sent_are_not():
    calls = (attempt(queued_seconds=0.0), attempt(1, queued_seconds=2.0), failed(2))
    told = counted(result(attempts=calls))
    assert told("queue_wait_ms_count", tier="small") == 2
    assert told("queue_wait_ms_sum", tier="small") == 2000
    assert told("queue_wait_ms_bucket", tier="small", le="1.0") == 1


def test_a_judges_attempt_counts_for_money_and_its_tokens_where_the_model_was_asked():
    judged = attempt(
        0, kind=Kind.JUDGE, step=Step(tier="small", judge="told"), outcome=Outcome.JUDGE_ERROR
    )
    told = counted(result(attempts=(judged,), completion=None, cost=cost()))
    assert told("attempts_total", tier="small", kind="judge", outcome="judge_error") == 1
    assert told("cost_usd_total", tier="small", kind="judge") == 0.00000172
    assert told("prefill_tokens_total", tier="small") is None


async def test_what_a_judge_asks_of_a_model_is_in_the_tokens_once_and_in_its_cost_by_its_verdict():
    script = Script(text="5", usage=Usage(input=30, cache_read=70, output=1))
    grading = tier("grading", script)
    made = metrics(tier("small"), grading)
    await ask(grading, request())
    told = Read(made.told([], None))
    assert told("prefill_tokens_total", tier="grading") == 100
    assert told("prefix_cache_hit_tokens_total", tier="grading") == 70
    assert told("prefix_cache_miss_tokens_total", tier="grading") == 30
    assert told("decode_tokens_total", tier="grading") == 1
    assert told.labels("cost_usd_total") == set()
    assert told.labels("ttft_ms_count") == set()
