import asyncio

import pytest

from cascade.types import Outcome, Step
from serving.dashboard.disagreements import disagreements
from serving.store.database import engine_for
from serving.store.feedback import Feedback
from serving.store.sink import SqlAuditSink
from tests.builders import attempt, escalated, result, verdict

AT = 1_790_000_000.0


def judged(request_id, score, outcome=Outcome.ACCEPTED):
    made = attempt(
        step=Step(tier="small", judge="told"),
        verdict=verdict(score, judge="told"),
        threshold=0.7,
        outcome=outcome,
    )
    return result(request_id, attempts=(made,), completion=made.completion, started_at=AT)


def word(request_id, score, tenant="default", after=1.0):
    return Feedback(
        request_id=request_id,
        tenant=tenant,
        source="",
        given_at=AT + after,
        score=score,
        label=None,
        correction=None,
        comment=None,
    )


@pytest.fixture
def stored(database, tmp_path):
    engine = engine_for(database.url)
    sink = SqlAuditSink(engine, tmp_path / "spool")
    sink.start()

    def write(*records):
        for each in records:
            if isinstance(each, Feedback):
                asyncio.run(sink.keep(each))
            else:
                sink.write(each)
        assert sink.flush(30)
        return engine

    yield write
    sink.close(5)
    engine.dispose()


def test_accepted_and_bad_or_rejected_and_good_are_disagreements_and_nothing_else(stored):
    engine = stored(
        judged("bad", 0.9),
        judged("good", 0.9),
        judged("served", 0.3, Outcome.REJECTED),
        judged("rightly", 0.3, Outcome.REJECTED),
        judged("unsaid", 0.9),
        word("bad", 0.0, after=1),
        word("good", 1.0, after=2),
        word("served", 1.0, after=3),
        word("rightly", 0.0, after=4),
    )
    found = disagreements(engine, AT, None, 10)
    assert [(d.request_id, d.accepted, d.label) for d in found] == [
        ("served", False, 1.0),
        ("bad", True, 0.0),
    ]
    assert (found[1].judge, found[1].score, found[1].threshold) == ("told", 0.9, 0.7)


def test_only_the_words_of_the_time_and_of_the_requests_own_tenant_count(stored):
    engine = stored(
        judged("early", 0.9),
        judged("late", 0.9),
        judged("theirs", 0.9),
        word("early", 0.0, after=1),
        word("late", 0.0, after=100),
        word("theirs", 0.0, tenant="somebody", after=50),
    )
    assert [d.request_id for d in disagreements(engine, AT + 10, None, 10)] == ["late"]
    assert [d.request_id for d in disagreements(engine, AT, AT + 10, 10)] == ["early"]
    assert len(disagreements(engine, AT, None, 1)) == 1


def test_an_answer_that_another_tier_replaced_is_not_what_somebody_spoke_of(stored):
    engine = stored(escalated("up", started_at=AT), word("up", 1.0))
    assert disagreements(engine, AT, None, 10) == []
