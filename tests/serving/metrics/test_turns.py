"""What one turn of a conversation left to the next, known by hand."""

from dataclasses import replace

import pytest

from cascade.caches import CacheCard
from cascade.forecast import Forecast
from cascade.pace import Pace
from cascade.types import Choice
from serving.metrics import turns
from serving.metrics.metrics import Metrics
from serving.prewarm.recorded import as_prewarm
from tests.builders import attempt, completion, request, result, usage
from tests.engines import tier
from tests.metrics import Read, counted
from tests.serving.doctor.logs import asked

BLOCKS = CacheCard(kind="blocks", block=16)
PACE = Pace()
for _tokens in (500, 4000, 1000, 8000, 2000):  # a millisecond for each prompt token
    PACE.observe(
        attempt(
            tier="large",
            completion=completion(usage=usage(input=_tokens, cache_read=0)),
            first_token_seconds=_tokens / 1000,
        )
    )


def told_of(*log, cache=BLOCKS, pace=PACE):
    """What is told after those turns at a tier with such a cache."""
    made = Metrics(Forecast({"large": tier("large", cache=cache)}, pace=pace))
    for each in log:
        made.note(each)
    return Read(made.told([], None))


def evicted(told):
    return told("evicted_before_next_turn_total", tier="large") or 0


FIRST = asked("r1", 0, 0, "hello", written=None)  # tools 500, system 1,000, message 200 tokens


def second(read, **changes):
    return asked("r2", 60, read, "hello", "a: hi", "more", written=None, **changes)


def test_a_turn_that_finds_what_the_last_one_left_is_no_loss():
    told = told_of(FIRST, second(1700))
    assert evicted(told) == 0
    assert not told.labels("recompute_prefill_ms_count")


def test_a_prefix_that_did_not_change_and_is_gone_was_evicted_and_is_computed_again():
    told = told_of(FIRST, second(500))
    assert evicted(told) == 1
    assert told("recompute_prefill_ms_count", tier="large") == 1
    assert told("recompute_prefill_ms_sum", tier="large") == pytest.approx(1200, rel=0.01)


def test_an_entry_that_expired_is_gone_too():
    ttl = CacheCard(kind="ttl", ttl_seconds=300)
    late = asked("r2", 400, 0, "hello", "a: hi", "more", written=None)
    assert evicted(told_of(FIRST, late, cache=ttl)) == 1


def test_a_prompt_that_was_changed_is_the_clients_doing():
    told = told_of(FIRST, second(500, system="You help, today."))
    assert evicted(told) == 0
    assert not told.labels("recompute_prefill_ms_count")


def test_another_replica_has_to_compute_it_again_and_nothing_was_evicted():
    there = asked("r1", 0, 0, "hello", written=None, replica="a")
    told = told_of(there, second(0, replica="b"))
    assert evicted(told) == 0
    assert told("recompute_prefill_ms_sum", tier="large") == pytest.approx(1700, rel=0.01)


@pytest.mark.parametrize("read", [None, 1600])
def test_what_nobody_reports_or_a_block_may_account_for_is_no_loss(read):
    assert evicted(told_of(FIRST, second(read))) == 0


def test_of_a_tier_whose_cache_is_not_known_nothing_is_said():
    assert evicted(told_of(FIRST, second(0), cache=None)) == 0


def test_without_a_learned_pace_the_time_is_not_made_up():
    told = told_of(FIRST, second(0), pace=Pace())
    assert evicted(told) == 1
    assert not told.labels("recompute_prefill_ms_count")


def test_conversations_and_tenants_are_kept_apart():
    assert evicted(told_of(FIRST, second(0, session="other"))) == 0
    assert evicted(told_of(FIRST, second(0, tenant="other"))) == 0


def test_a_sub_agent_in_between_takes_nothing_away():
    aside = asked("r3", 30, 0, "look it up", written=None, system="You search.", tools=())
    assert evicted(told_of(FIRST, aside, second(1700))) == 0
    assert evicted(told_of(FIRST, aside, second(0))) == 1


def test_another_tier_in_between_is_no_eviction():
    between = asked("r3", 30, 0, "hello", "a: hi", "and", tier="small", written=None)
    assert evicted(told_of(FIRST, between, second(1700))) == 0


def test_only_so_many_conversations_are_remembered():
    many = [asked("r", 1, 0, "hello", session=str(i)) for i in range(turns.MAX_SESSIONS)]
    assert evicted(told_of(FIRST, *many, second(0))) == 0
    assert evicted(told_of(FIRST, *many[1:], second(0))) == 1


def calling(*ids, at=100.0, took=2.0, **whose):
    """A request whose answer calls tools."""
    calls = [{"id": each, "type": "function", "function": {"name": "f"}} for each in ids]
    answer = completion(choices=(Choice(tool_calls=calls, finish_reason="tool_calls"),))
    return result(
        request=request(**whose),
        attempts=(attempt(completion=answer),),
        completion=answer,
        started_at=at,
        seconds=took,
    )


def bringing(*ids, at, after=(), **whose):
    """A request with the results of tools."""
    results = [{"role": "tool", "tool_call_id": each, "content": "42"} for each in ids]
    said = [{"role": "assistant", "tool_calls": [{"id": each} for each in ids]}]
    return result(request=request(messages=[*said, *results, *after], **whose), started_at=at)


def test_a_tool_takes_from_the_end_of_the_answer_to_the_request_with_its_result():
    told = counted(calling("c1"), bringing("c1", at=105.5))
    assert told("tool_latency_ms_count") == 1
    assert told("tool_latency_ms_sum") == pytest.approx(3500)


def test_tools_that_were_called_together_count_once():
    told = counted(calling("c1", "c2"), bringing("c1", "c2", at=103.0))
    assert (told("tool_latency_ms_count"), told("tool_latency_ms_sum")) == (1, 1000)


def test_a_result_that_is_history_does_not_count_again():
    later = [{"role": "assistant", "content": "so"}, {"role": "user", "content": "and?"}]
    told = counted(calling("c1"), bringing("c1", at=103.0), bringing("c1", at=110, after=later))
    assert told("tool_latency_ms_count") == 1


def test_a_result_with_something_said_after_it_counts():
    more = [{"role": "user", "content": "and be quick"}]
    assert (
        counted(calling("c1"), bringing("c1", at=103.0, after=more))("tool_latency_ms_count") == 1
    )


def test_the_result_of_another_conversations_call_is_none_of_this_one():
    told = counted(calling("c1"), bringing("c1", at=103.0, session="other"))
    assert told("tool_latency_ms_count") == 0


def test_a_result_that_is_sent_ahead_to_fill_a_cache_does_not_count():
    came = bringing("c1", at=105.5)
    ahead = as_prewarm(replace(came, request=replace(came.request, prewarm=True), started_at=103.0))
    told = counted(calling("c1"), ahead, came)
    assert (told("tool_latency_ms_count"), told("tool_latency_ms_sum")) == (1, 3500)


def test_a_wall_clock_that_was_set_back_makes_no_negative_time():
    assert counted(calling("c1"), bringing("c1", at=90.0))("tool_latency_ms_sum") == 0


def test_only_so_many_tool_calls_are_remembered():
    many = [calling(*map(str, range(turns.MAX_TOOL_CALLS)))]
    assert counted(calling("c1"), *many, bringing("c1", at=103))("tool_latency_ms_count") == 0
