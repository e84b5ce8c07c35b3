from dataclasses import replace

import numpy as np
import pytest

from serving.results import Trial
from serving.results.guardrails import breaches
from serving.results.tallies import slower_than
from tests.serving.results.log import BEGUN, asked, said, sampled, write

TRIAL = Trial(name="auto", control="a", weights={"a": 1, "b": 1}, since=BEGUN)


def guarded(**bounds):
    return replace(TRIAL, guardrails=bounds)


def both(count, *, a=None, b=None):
    return [
        asked(f"{arm}{i:04d}", arm, **fields(i) if callable(fields) else fields)
        for arm, fields in (("a", a or {}), ("b", b or {}))
        for i in range(count)
    ]


def scores(engine, count, share_a, share_b):
    write(
        engine,
        words=[
            said(f"{arm}{i:04d}", float(i % 100 < share * 100))
            for arm, share in (("a", share_a), ("b", share_b))
            for i in range(count)
        ],
    )


def test_an_arm_whose_answers_are_worse_is_beyond_the_bound(engine):
    write(engine, both(500))
    scores(engine, 500, 0.9, 0.6)
    (breach,) = breaches(engine, guarded(quality=-0.02))
    assert (breach.arm, breach.guardrail, breach.bound) == ("b", "quality", -0.02)
    assert breach.interval.high < -0.02
    assert "b is beyond the guardrail quality of -0.02" in breach.message


def test_bad_luck_turns_nobody_off(engine):
    write(engine, both(500))
    scores(engine, 500, 0.9, 0.85)
    assert breaches(engine, guarded(quality=-0.02)) == []


def test_a_judge_that_no_arm_acts_on_guards_quality_as_well(engine):
    write(
        engine,
        both(300),
        [sampled(f"{arm}{i:04d}", 0.9 if arm == "a" else 0.2) for arm in "ab" for i in range(300)],
    )
    assert [each.guardrail for each in breaches(engine, guarded(quality=-0.02))] == ["quality"]


@pytest.mark.parametrize(
    ("bounds", "worse"),
    [
        ({"cost": 0.5}, {"dollars": 0.03}),
        ({"error_rate": 0.05}, {"status": "error"}),
        ({"latency_p95": 0.5}, {"duration_ms": 900.0}),
    ],
)
def test_cost_errors_and_time_have_bounds_too(engine, bounds, worse):
    random = np.random.default_rng(1)
    plain = {"dollars": 0.01, "duration_ms": 100.0}

    def noisy(fields):
        def of(_i):
            noise = float(np.exp(random.normal(0, 0.2)))
            return {
                **fields,
                "dollars": fields["dollars"] * noise,
                "duration_ms": fields["duration_ms"] * noise,
            }

        return of

    write(engine, both(400, a=noisy(plain), b=noisy({**plain, **worse})))
    (breach,) = breaches(engine, guarded(**bounds))
    assert (breach.arm, breach.guardrail) == ("b", *bounds)
    assert breach.interval.low > next(iter(bounds.values()))
    assert breaches(engine, guarded(**dict.fromkeys(bounds, 1e3))) == []


def test_arms_that_nobody_was_in_yet_share_the_level_of_false_alarms(engine):
    write(engine, both(500))
    scores(engine, 500, 0.9, 0.81)
    three = replace(TRIAL, guardrails={"quality": -0.001})
    assert breaches(engine, three)
    many = {"a": 1, "b": 1, **{f"new {i}": 1 for i in range(50)}}
    assert breaches(engine, replace(three, weights=many)) == []


def test_requests_that_failed_make_no_percentile_surer(engine):
    rows = both(200, b={"duration_ms": 150.0})
    failed = [
        asked(f"f{arm}{i}", arm, status="error", duration_ms=1.0)
        for arm in "ab"
        for i in range(4000)
    ]
    write(engine, rows)
    with engine.connect() as connection:
        known = slower_than(connection, TRIAL, 120.0)
    write(engine, failed)
    with engine.connect() as connection:
        assert slower_than(connection, TRIAL, 120.0) == known
    assert (known["a"].ratio, known["b"].ratio) == (0, 1)


def test_without_bounds_or_without_the_control_nothing_is_beyond(engine):
    write(engine, both(100, b={"status": "error"}))
    assert breaches(engine, TRIAL) == []
    assert breaches(engine, replace(guarded(error_rate=0.1), control="gone")) == []
    off = replace(guarded(error_rate=0.1), weights={"a": 1, "b": 0})
    assert breaches(engine, off) == []
