"""The figures that compare what was predicted with what was reported."""

from decimal import Decimal

import pytest

from benchmarks.prediction.conversations import history, turns
from benchmarks.prediction.rows import Measured, Row, as_json, row, table
from benchmarks.prediction.servers import cache_of
from cascade.errors import ConfigError
from cascade.quote import Quote
from cascade.types import Attempt, Choice, Completion, Kind, Step, Usage
from tests.engines import tier


def one(predicted, reported, *, expected="0.01", paid="0.01"):
    return Row(
        conversation=0,
        turn=0,
        quoted=100,
        prompt=100,
        predicted=predicted,
        reported=reported,
        predicted_dollars=Decimal(expected),
        dollars=Decimal(paid),
    )


def test_conversations_grow_in_a_mixed_order_behind_shared_system_prompts():
    sent = turns(conversations=8, length=5, seed=1, mark="Now.")
    order = [turn.conversation for turn in sent]
    assert sorted(order) == [number for number in range(8) for _ in range(5)]
    assert order != sorted(order)
    systems = {turn.conversation: turn.system for turn in sent}
    assert systems[0] == systems[4] != systems[1]
    assert all(turn.system.startswith("Now.\n") for turn in sent)
    assert all(24 <= turn.answer_tokens <= 40 for turn in sent)
    assert sent == turns(conversations=8, length=5, seed=1, mark="Now.")


def test_a_turns_messages_are_the_conversation_so_far():
    turn = turns(conversations=1, length=1, seed=1, mark="Now.")[0]
    messages = history(turn, [("how", "so")])
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "user"]
    assert [each["content"] for each in messages] == [turn.system, "how", "so", turn.ask]


def test_errors_are_of_the_rows_that_were_reported():
    rows = [one(50, 50), one(50, 34), one(50, 50), one(40, None), one(10, 42)]
    found = Measured(server="big", block=16, rows=rows)
    assert (found.errors, found.median, found.high) == ([0, 0, 16, 32], 8, 32)
    assert table([found]).rows[0][:7] == ("big", "5", "20.0%", "400", "176", "8 (0.5)", "32 (2)")


def test_a_server_that_reports_nothing_has_no_figures():
    found = Measured(server="big", block=16, rows=[one(50, None)])
    assert (found.median, found.high, found.difference) == (None, None, None)
    assert table([found]).rows[0][:4] == ("big", "1", "100.0%", "")
    assert as_json(found)["not_reported"] == 1


def test_the_difference_is_a_share_of_what_was_paid():
    rows = [one(0, 0, expected="0.03", paid="0.02"), one(0, 0, expected="0.03", paid="0.03")]
    assert Measured(server="s", block=1, rows=rows).difference == pytest.approx(0.2)


def test_a_row_prices_the_prompt_as_quoted_and_as_reported():
    usage = Usage(input=60, cache_read=40, output=7)
    attempt = Attempt(
        index=0,
        kind=Kind.ANSWER,
        step=Step(tier="small"),
        quote=Quote(tier="small", warm_tokens=50, cold_tokens=50),
        completion=Completion(choices=[Choice(text="yes")], usage=usage),
    )
    made = tier("small")
    found = row(3, 2, attempt, made)
    assert (found.predicted, found.reported, found.error) == (50, 40, 10)
    assert (found.quoted, found.prompt) == (100, 100)
    assert found.predicted_dollars == made.prices.prompt_cost(warm=50, cold=50)
    assert found.dollars == made.prices.prompt_cost(warm=40, cold=60)


def test_an_attempt_without_a_quote_is_no_row():
    attempt = Attempt(index=0, kind=Kind.ANSWER, step=Step(tier="small"))
    with pytest.raises(ValueError, match="attempt 0 of small has no quote, usage or price"):
        row(0, 0, attempt, tier("small"))


def test_vllm_says_how_its_cache_is_made():
    line = 'vllm:cache_config_info{block_size="32",engine="0",num_gpu_blocks="100"} 1.0'
    assert cache_of(f"# HELP x\n{line}\n") == {"blocks": 32, "capacity_tokens": 99 * 32}


def test_a_server_that_does_not_say_it_is_refused():
    with pytest.raises(ConfigError, match="vllm:cache_config_info"):
        cache_of("vllm:num_requests_running 0.0\n")
