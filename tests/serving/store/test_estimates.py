"""An estimate that asked a model is seen wherever the money of a request is."""

import json

from rich.console import Console
from sqlalchemy import Engine

from cascade.audit import record
from cascade.types import Failure, Kind, Outcome, Step
from serving.explain import explanation
from serving.store.present import request_json, request_view, tail_table
from serving.store.rows import decode, encode, insert
from serving.store.stats import stats
from tests.builders import attempt, cost, result

ESTIMATE = attempt(
    0,
    kind=Kind.ESTIMATE,
    step=Step(tier="small"),
    reason="says which tier will do",
    outcome=None,
    completion=None,
    quote=None,
    cold_premium=None,
    cost=cost("0.0000004"),
    first_token_seconds=None,
)
ANSWERED = result("a", attempts=(ESTIMATE, attempt(1, tier="large", cost=cost("0.0000344"))))


def shown(view):
    console = Console(width=100, no_color=True)
    with console.capture() as captured:
        console.print(view)
    return captured.get()


def test_show_has_its_row_its_bill_and_its_reason():
    text = shown(request_view(record(ANSWERED)))
    for part in ("small, estimate: says which tier will do", "$0.000000400", "total $0.0000348"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_show_says_why_one_failed():
    fault = Failure(type="EstimatorError", message="small wrote 'perhaps'", status=500)
    failed = attempt(
        0,
        kind=Kind.ESTIMATE,
        step=Step(tier="small"),
        outcome=Outcome.ESTIMATE_ERROR,
        completion=None,
        error=fault,
    )
    text = shown(request_view(record(result("a", attempts=(failed, attempt(1))))))
    for part in ("estimate_error", "EstimatorError: small wrote 'perhaps'"):
        assert part in text


def test_the_way_in_the_tail_has_the_answers_only():
    assert "small > large" not in shown(tail_table([record(ANSWERED)]))
    assert "large" in shown(tail_table([record(ANSWERED)]))


def test_the_json_of_the_attempts_adds_up_to_the_bill():
    found = json.loads(json.dumps(request_json(record(ANSWERED))))
    assert [each["kind"] for each in found["attempts"]] == ["estimate", "answer"]
    assert found["cost_usd"] == "0.0000348"
    assert found["attempts"][0]["cost_usd"] == "0.0000004"


def test_the_client_is_told_of_it():
    told = explanation(ANSWERED)
    assert told["attempts"][0]["kind"] == "estimate"
    assert told["attempts"][0]["cost_usd"] == "0.0000004"
    assert told["cost_usd"] == "0.0000348"


def test_stats_count_it_as_a_call_of_its_tier_and_not_as_an_escalation(engine: Engine):
    with engine.begin() as connection:
        insert(connection, [decode(encode(record(ANSWERED)))])
    found = stats(engine)
    assert found.escalated == 0
    tiers = {tier.tier: tier for tier in found.tiers}
    assert (tiers["small"].calls, tiers["small"].answered) == (1, 0)
    assert sum(tier.dollars for tier in found.tiers) == found.dollars
    assert found.first_token is not None
