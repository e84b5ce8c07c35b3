from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from cascade.audit import record
from cascade.types import Outcome, Step
from serving.prewarm.recorded import as_prewarm
from serving.store.feedback import Feedback
from serving.store.overview import overview
from serving.store.rows import decode, encode, insert
from serving.store.stats import ArmUse, JudgeUse, Quantiles, Stats, TierUse, stats
from tests.builders import attempt, completion, cost, escalated, failed, result, usage, verdict

SMALL, LARGE = "0.00000172", "0.0000344"


@pytest.fixture
def found(engine: Engine) -> Stats:
    """Four requests whose sums can be done by hand."""
    judged = Step(tier="small", judge="logprob")
    silent = attempt(
        step=judged,
        verdict=verdict(None),
        outcome=Outcome.REJECTED,
        completion=completion(usage=usage(input=100, cache_read=None, output=5, reasoning=3)),
    )
    sure = attempt(step=judged, verdict=verdict(0.9), threshold=0.7, first_token_seconds=0.1)
    unpriced = failed(0, tier="large", cost=None)
    given = [
        result(
            "a", attempts=(sure,), seconds=0.1, overhead_seconds=0.001, baseline=cost("0.00001")
        ),
        escalated("b", seconds=0.2, overhead_seconds=0.002, baseline=cost("0.00003")),
        result(
            "c",
            attempts=(unpriced, attempt(1)),
            policy="always-large",
            experiment=None,
            arm=None,
            degraded=True,
            baseline=cost("5"),
            seconds=0.3,
            overhead_seconds=0.003,
        ),
        result("d", attempts=(silent,), cancelled=True, seconds=0.4, overhead_seconds=0.004),
    ]
    timed = [
        replace(record(each), created_at=100.0 * number) for number, each in enumerate(given, 1)
    ]
    said = [
        thought("a", 1.0),
        thought("a", 0.5, source="ci"),
        thought("b", 0.0),
        thought("c", None),
        thought("d", 0.0, tenant="somebody else's"),
        thought("not there", 0.0),
    ]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in (*timed, *said)])
    return stats(engine)


def thought(request_id: str, score: float | None, **overrides: str) -> Feedback:
    values = {"request_id": request_id, "tenant": "default", "source": "", **overrides}
    return Feedback(
        **values, given_at=1.0, score=score, label="so-so", correction=None, comment=None
    )


def test_totals(found: Stats) -> None:
    assert found.requests == 4
    assert (found.first_at, found.last_at) == (100.0, 400.0)
    assert found.statuses == {"ok": 2, "cancelled": 1, "degraded": 1}
    assert found.escalated == 2
    assert found.dollars == 3 * Decimal(SMALL) + Decimal(LARGE)
    assert found.unknown_cost == 1


def test_savings_are_of_the_requests_that_can_be_compared(found: Stats) -> None:
    assert found.compared == 2  # of c the cost is unknown, of d the baseline
    assert found.baseline == Decimal("0.00004")
    assert found.saved == found.baseline - 2 * Decimal(SMALL) - Decimal(LARGE)


def test_scores_count_when_they_are_the_tenants_own(found: Stats) -> None:
    assert found.scored == 2
    assert found.mean_score == pytest.approx(0.5)


def test_by_arm(found: Stats) -> None:
    assert list(found.arms) == [
        ArmUse(
            policy="default",
            experiment="auto",
            arm="cascade",
            requests=3,
            escalated=1,
            dollars=3 * Decimal(SMALL) + Decimal(LARGE),
            unknown_cost=0,
        ),
        ArmUse(
            policy="always-large",
            experiment=None,
            arm=None,
            requests=1,
            escalated=1,
            dollars=Decimal(0),
            unknown_cost=1,
        ),
    ]


def test_by_tier(found: Stats) -> None:
    large, small = found.tiers
    assert large == TierUse(
        tier="large",
        answered=1,
        calls=2,
        failed=1,
        input_tokens=40,
        cache_read_tokens=60,
        cache_write_tokens=0,
        output_tokens=12,
        reasoning_tokens=0,
        cache_reported=100,
        dollars=Decimal(LARGE),
        unknown_cost=1,
    )
    assert small == TierUse(
        tier="small",
        answered=2,
        calls=4,
        failed=0,
        input_tokens=40 * 3 + 100,
        cache_read_tokens=60 * 3,
        cache_write_tokens=0,
        output_tokens=12 * 3 + 5,
        reasoning_tokens=3,
        cache_reported=100 * 3,
        dollars=4 * Decimal(SMALL),
        unknown_cost=0,
    )
    assert small.cached_share == 0.6


def test_by_judge(found: Stats) -> None:
    (judge,) = found.judges
    assert judge == JudgeUse(
        judge="logprob",
        tier="small",
        answers=3,
        accepted=1,
        silent=1,
        mean_score=pytest.approx((0.9 + 0.412) / 2),
    )


def close_to(p50: float, p95: float, p99: float) -> object:
    return pytest.approx((p50, p95, p99), rel=0.02)


def values(found: Quantiles | None) -> tuple[float, float, float]:
    assert found is not None
    return found.p50, found.p95, found.p99


def test_times(found: Stats) -> None:
    assert values(found.duration) == close_to(200.0, 400.0, 400.0)
    assert values(found.overhead) == close_to(2.0, 4.0, 4.0)
    assert values(found.first_token) == close_to(50.0, 100.0, 100.0)


def test_only_requests_between_the_two_times_count(engine: Engine, found: Stats) -> None:
    assert found.requests == 4
    some = stats(engine, since=200.0, until=300.0)
    assert (some.requests, some.escalated) == (1, 1)
    assert [tier.calls for tier in some.tiers] == [1, 1]
    assert values(some.duration) == close_to(200.0, 200.0, 200.0)


def test_an_empty_log_has_no_times_and_costs_nothing(engine: Engine) -> None:
    nothing = stats(engine)
    assert (nothing.requests, nothing.dollars, nothing.unknown_cost) == (0, Decimal(0), 0)
    assert (nothing.compared, nothing.saved, nothing.scored) == (0, Decimal(0), 0)
    assert nothing.mean_score is None
    assert (nothing.first_at, nothing.duration, nothing.statuses) == (None, None, {})
    assert (list(nothing.arms), list(nothing.tiers), list(nothing.judges)) == ([], [], [])


def test_quantiles_are_close_to_the_smallest_value_that_enough_do_not_exceed(
    engine: Engine,
) -> None:
    given = [record(result(seconds=number / 1000)) for number in range(1, 101)]
    with engine.begin() as connection:
        insert(connection, [decode(encode(each)) for each in given])
    assert values(stats(engine).duration) == close_to(50.0, 95.0, 99.0)


def test_money_adds_up_to_the_last_pico_dollar(engine: Engine) -> None:
    tiny = attempt(cost=cost("0.000000000001"))
    with engine.begin() as connection:
        insert(
            connection,
            [decode(encode(record(result(attempts=(tiny,))))) for _ in range(1000)],
        )
    assert stats(engine).dollars == Decimal("0.000000001")


def test_what_went_ahead_to_fill_a_cache_is_spent_and_is_nobodys_request(engine: Engine) -> None:
    given = [escalated("a"), as_prewarm(result("b"))]
    with engine.begin() as connection:
        insert(connection, [decode(encode(record(each))) for each in given])
    found = stats(engine)
    assert (found.requests, found.escalated, found.statuses) == (1, 1, {"ok": 1})
    assert found.dollars == 2 * Decimal(SMALL) + Decimal(LARGE)
    assert {use.policy: use.requests for use in found.arms} == {"default": 1, "prewarm": 1}
    assert [use.calls for use in found.tiers] == [1, 2]
    shown = overview(engine).totals
    assert (shown.requests, shown.escalated, shown.dollars) == (1, 1, found.dollars)
