import time
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from cascade.audit import record
from cascade.types import Kind, Step
from serving.store.database import WRITES
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.overview import Bin, Only, judges, overview
from serving.store.rows import decode, encode, insert
from serving.store.sums import DAY, HOUR
from tests.builders import attempt, cost, escalated, request, result, verdict

NOON = 1_789_992_000  # 2026-09-21 12:00:00 UTC
JUDGED = Step(tier="small", judge="logprob")


@pytest.fixture
def log(engine: Engine) -> Engine:
    """Two requests at noon, one an hour later, one the day after; a shadow call and two words."""

    def sure(score: float) -> object:
        return attempt(step=JUDGED, verdict=verdict(score), threshold=0.7)

    given = [
        result("a", attempts=(sure(0.92),), started_at=NOON + 60.0, baseline=cost("0.00001")),
        escalated("b", started_at=NOON + 120.0, degraded=True),
        result(
            request=request(id="c", tenant="acme"),
            attempts=(sure(0.93),),
            arm="control",
            started_at=NOON + HOUR + 5.0,
        ),
        result("d", attempts=(sure(0.3),), started_at=NOON + DAY + 5.0),
    ]
    shadow = attempt(5, kind=Kind.SHADOW, tier="large", propensity=0.5, cost=cost("0.25"))
    words = [word("a", 1.0), word("c", 0.0, tenant="acme")]
    late = Late(request_id="a", attempts=(shadow,), at=1.0)
    lines = [*(record(each) for each in given), late, *words]
    with engine.execution_options(**WRITES).begin() as connection:
        insert(connection, [decode(encode(each)) for each in lines])  # type: ignore[arg-type]
    return engine


def word(request_id: str, score: float, tenant: str = "default") -> Feedback:
    return Feedback(
        request_id=request_id,
        tenant=tenant,
        source="",
        given_at=1.0,
        score=score,
        label=None,
        correction=None,
        comment=None,
    )


def test_totals(log: Engine) -> None:
    totals = overview(log).totals
    assert (totals.requests, totals.escalated, totals.degraded, totals.failed) == (4, 1, 1, 0)
    assert totals.dollars == 4 * Decimal("0.00000172") + Decimal("0.0000344")
    assert (totals.compared, totals.saved) == (1, Decimal("0.00000828"))
    assert totals.shadow_dollars == Decimal("0.25")
    assert (totals.scored, totals.mean_score) == (2, 0.5)
    assert totals.cold_premium == 6 * Decimal("0.000001")
    assert totals.cached_share == pytest.approx(0.6)


def test_a_short_range_is_shown_by_the_hour_and_a_long_one_by_the_day(log: Engine) -> None:
    short = overview(log, NOON + 600.0, NOON + HOUR + 1.0)
    assert short.step_seconds == HOUR
    assert [(p.at, p.totals.requests) for p in short.series] == [(NOON, 2), (NOON + HOUR, 1)]
    assert short.series[0].answered == {"small": 1, "large": 1}
    assert short.totals.requests == 3
    long = overview(log)
    day = NOON - 12 * HOUR
    assert long.step_seconds == DAY
    assert [(p.at, p.totals.requests) for p in long.series] == [(day, 3), (day + DAY, 1)]
    assert sum(p.totals.dollars for p in long.series) == long.totals.dollars


def test_times_are_told_for_all_and_by_step(log: Engine) -> None:
    found = overview(log, NOON, NOON + 2 * HOUR)
    assert found.duration is not None
    assert found.duration.p50 == pytest.approx(210.0, rel=0.02)
    assert found.series[1].first_token is not None
    assert found.series[1].first_token.p99 == pytest.approx(50.0, rel=0.02)


def test_only_one_tenants_or_arms_requests(log: Engine) -> None:
    acme = overview(log, only=Only(tenant="acme"))
    assert (acme.totals.requests, acme.totals.input_tokens, acme.duration) == (1, 40, None)
    control = overview(log, only=Only(experiment="auto", arm="control"))
    assert (control.totals.requests, len(control.arms)) == (1, 1)
    assert control.duration is not None
    assert overview(log, only=Only(tenant="nobody")).totals.requests == 0


def test_a_range_up_to_now_takes_in_the_hour_that_goes_on(engine: Engine) -> None:
    now = time.time()
    with engine.execution_options(**WRITES).begin() as connection:
        insert(connection, [decode(encode(record(result("n", started_at=now))))])
    found = overview(engine, now - DAY, now)
    assert (found.totals.requests, found.step_seconds) == (1, HOUR)


def test_an_empty_log_has_an_empty_overview(engine: Engine) -> None:
    found = overview(engine)
    assert (found.totals.requests, list(found.series), list(found.tiers)) == (0, [], [])
    assert (found.duration, found.totals.cached_share, found.totals.mean_score) == (None,) * 3
    assert judges(engine) == []


def test_judges_are_held_against_feedback_by_their_score(log: Engine) -> None:
    (report,) = judges(log)
    assert (report.judge, report.tier, report.answers, report.accepted) == (
        *("logprob", "small"),
        *(4, 3),
    )
    assert (report.silent, report.labelled, report.disagreed) == (0, 2, 1)
    assert report.bins[-1] == Bin(
        low=0.9,
        high=0.95,
        answers=2,
        labelled=2,
        mean_score=pytest.approx(0.925),
        mean_label=0.5,
    )
    assert [bin_.answers for bin_ in report.bins] == [1, 1, 2]
