import pytest

from serving.alerts.log import Finding, delivered, keep, latest, waiting
from serving.alerts.turn import turn
from serving.store.database import engine_for

SILENT = Finding(kind="judge_silent", subject="told", message="it is silent", details={"now": 1.0})


def test_a_finding_is_kept_once_a_day(engine):
    first = keep(engine, SILENT)
    assert first is not None
    assert keep(engine, SILENT) is None
    assert keep(engine, SILENT, repeat_seconds=0) is not None
    other = Finding(kind="judge_silent", subject="other", message="so is it", details={})
    assert keep(engine, other) is not None
    assert [each.subject for each in latest(engine)] == ["other", "told", "told"]
    assert latest(engine, limit=1)[0].subject == "other"


def test_a_number_without_an_end_is_kept_as_unknown(engine):
    details = {"interval": {"low": 0.5, "high": float("inf")}, "arm": "b"}
    keep(engine, Finding(kind="guardrail", subject="auto/b", message="slow", details=details))
    assert latest(engine)[0].details == {"interval": {"low": 0.5, "high": None}, "arm": "b"}


def test_what_was_delivered_waits_no_more(engine):
    keep(engine, SILENT)
    (alert,) = waiting(engine, since=0)
    assert (alert.kind, alert.details, alert.delivered_at) == ("judge_silent", {"now": 1.0}, None)
    delivered(engine, alert)
    assert waiting(engine, since=0) == []
    assert latest(engine)[0].delivered_at is not None


def test_what_is_too_old_waits_no_more(engine):
    keep(engine, SILENT)
    assert waiting(engine, since=latest(engine)[0].created_at + 1) == []


def test_one_process_at_a_time_has_its_turn(engine, database):
    other = engine_for(database.url)
    with turn(engine) as mine:
        assert mine
        with turn(other) as theirs:
            assert not theirs
    with turn(other) as theirs:
        assert theirs
    other.dispose()


def test_a_turn_that_broke_is_over(engine):
    with pytest.raises(RuntimeError, match="broke"), turn(engine):
        raise RuntimeError("broke")
    with turn(engine) as mine:
        assert mine
