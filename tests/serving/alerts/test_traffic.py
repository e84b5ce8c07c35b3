import pytest

from serving.alerts.findings import of_traffic
from serving.alerts.traffic import HOUR, last_hour, week_before
from tests.serving.results.log import BEGUN, asked, called, write

NOW = BEGUN - BEGUN % HOUR + 8 * 24 * HOUR + 0.5 * HOUR


def fill(engine, name, count, at, call=None, **fields):
    """Requests at a time, each with a call for an answer and a judge's verdict on it."""
    ids = [f"{name}-{number}" for number in range(count)]
    call = {"cache_read_tokens": 80, "input_tokens": 20, **(call or {})}
    judged = {"kind": "judge", "index": 1, "judge": "told", "score": call.pop("score", 0.9)}
    write(
        engine,
        [asked(each, created_at=at, dollars=0.01, **fields) for each in ids],
        [row for each in ids for row in (called(each, **call), called(each, **judged))],
    )


def week(engine):
    for hour in range(30):
        fill(engine, f"h{hour}", 40, NOW - 2 * HOUR - hour * HOUR, answers=1 + (hour % 10 == 0))


def found(engine):
    return {
        each.kind: each for each in of_traffic(last_hour(engine, NOW), week_before(engine, NOW))
    }


def test_an_hour_like_the_others_has_nothing_to_tell(engine):
    week(engine)
    fill(engine, "now", 40, NOW - 60)
    assert found(engine) == {}


def test_hours_are_those_of_the_clock_and_end_before_the_last_hour(engine):
    week(engine)
    fill(engine, "now", 40, NOW - 60)
    hours = week_before(engine, NOW)
    assert len(hours["escalation_rate", "default"]) == 30
    assert {hour.number for hour in hours["escalation_rate", "default"]} == {40}
    assert sum(hour.mean for hour in hours["escalation_rate", "default"]) == 3
    now = last_hour(engine, NOW)
    assert now["escalation_rate", "default"].mean == 0
    assert now["cache_hit_rate", "small"].mean == pytest.approx(0.8)
    assert now["cache_hit_rate", "small"].number == pytest.approx(40)
    assert now["cost", "default"].mean == pytest.approx(0.01)
    assert now["judge_silent", "told"].mean == 0


def test_a_silent_judge_is_told(engine):
    week(engine)
    fill(engine, "now", 40, NOW - 60, call={"score": None})
    (kind, finding), *more = found(engine).items()
    assert (kind, finding.subject, more) == ("judge_silent", "told", [])
    assert finding.message == (
        "judge told had no answer to 100% of 40 questions in the last hour; usual is 0.0%, the "
        "worst hour of the week had 0.0%"
    )
    assert finding.details["now"] == 1.0


def test_a_jump_of_cost_and_a_fall_of_the_cache_are_told(engine):
    week(engine)
    fill(
        engine,
        "now",
        40,
        NOW - 60,
        call={"cache_read_tokens": 5, "input_tokens": 95},
    )
    write(
        engine, [asked(f"dear-{i}", created_at=NOW - 30, dollars=0.1 + i / 1e4) for i in range(400)]
    )
    told = found(engine)
    assert told.keys() == {"cost", "cache_hit_rate"}
    assert "policy default cost $0.1" in told["cost"].message
    assert "tier small read 5% of its prompt tokens" in told["cache_hit_rate"].message


def test_more_escalations_than_in_the_worst_hour_are_told(engine):
    for hour in range(30):
        fill(engine, f"h{hour}", 40, NOW - 2 * HOUR - hour * HOUR)
    fill(engine, "now", 40, NOW - 60, answers=2)
    told = found(engine)
    assert told.keys() == {"escalation_rate"}
    assert "policy default escalated 100% of 40 requests" in told["escalation_rate"].message


def test_an_empty_log_has_nothing_to_tell(engine):
    assert found(engine) == {}
