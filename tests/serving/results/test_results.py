"""Results out of a database, against the same numbers worked out by hand or in numpy."""

import math
from dataclasses import replace

import numpy as np
import pytest

from serving.results import Trial, results
from serving.results.comparisons import PREFERENCE, measure
from serving.results.covariates import BEFORE_SECONDS
from tests.serving.results.log import BEGUN, asked, called, said, sampled, write

TRIAL = Trial(name="auto", control="a", weights={"a": 1, "b": 1}, since=BEGUN)


def many(arm, count, **fields):
    return [asked(f"{arm}{i:04d}", arm, **fields) for i in range(count)]


def test_each_arm_is_counted(engine):
    write(
        engine,
        [
            asked("a1", "a", unit="u1", dollars=0.03, baseline=0.03),
            asked("a2", "a", unit="u1", dollars=0.01, baseline=0.04, answers=2),
            asked("a3", "a", unit="u2", status="error"),
            asked("b1", "b", unit="u3", dollars=0.01, baseline=0.02, status="degraded"),
        ],
    )
    a, b = results(engine, TRIAL).arms
    assert (a.arm, a.units, a.requests, a.escalated, a.degraded, a.failed) == ("a", 2, 3, 1, 0, 1)
    assert (a.priced, a.compared) == (2, 2)
    assert a.dollars == pytest.approx(0.04)
    assert a.dollars_a_request == pytest.approx(0.02)
    assert (a.baseline, a.saved) == (pytest.approx(0.07), pytest.approx(0.03))
    assert (b.arm, b.units, b.degraded) == ("b", 1, 1)
    assert b.saved_share == pytest.approx(0.5)


def test_only_the_experiments_own_requests_in_the_time_count(engine):
    write(
        engine,
        [
            asked("in"),
            asked("before", created_at=BEGUN - 1),
            asked("after", created_at=BEGUN + 100),
            asked("elsewhere", experiment="other"),
            asked("nowhere", experiment=None, arm=None),
        ],
    )
    timed = Trial(name="auto", control="a", since=BEGUN, until=BEGUN + 100)
    assert [each.requests for each in results(engine, timed).arms] == [1]


def test_a_unit_of_two_arms_is_left_out_and_counted(engine):
    write(
        engine,
        [asked("1", "a", unit="u"), asked("2", "b", unit="u"), asked("3", "a"), asked("4", "b")],
    )
    found = results(engine, TRIAL)
    assert found.crossed == 1
    assert [each.requests for each in found.arms] == [1, 1]


def test_times_tokens_and_premium_are_of_the_calls_for_answers(engine):
    write(
        engine,
        [asked(f"a{i}", "a", duration_ms=float(i)) for i in range(1, 101)],
        [
            called(
                "a1",
                outcome="accepted",
                first_token_ms=40.0,
                input_tokens=30,
                cache_read_tokens=70,
                cold_premium_pico=5 * 10**9,
            ),
            called("a2", outcome="accepted", judge="told", first_token_ms=40.0, duration_ms=300.0),
            called("a3", outcome="accepted", first_token_ms=20.0, input_tokens=50),
            called("a3", index=1, kind="shadow", input_tokens=9, cache_read_tokens=1),
        ],
    )
    (a,) = results(engine, TRIAL).arms
    assert a.duration == (50.0, 95.0, 99.0)
    assert a.first_token == (41.0, 300.0, 300.0)  # what is judged cannot be read before it is whole
    assert a.cached_share == 0.7
    assert a.cold_premium == pytest.approx(0.005)


def test_quality_is_what_tenants_say_of_their_own_requests(engine):
    write(
        engine,
        many("a", 4),
        words=[
            said("a0000", 1.0),
            said("a0000", 0.5, source="ci"),
            said("a0001", label=" Bad "),
            said("a0002", label="odd"),
            said("a0003", 0.0, tenant="somebody else"),
            said("nobody", 1.0),
        ],
    )
    (a,) = results(engine, TRIAL).arms
    assert a.quality == {"feedback": (pytest.approx(0.375), 2)}


def test_a_late_word_counts_for_its_request(engine):
    write(engine, many("a", 2), words=[said("a0000", 1.0, given_at=BEGUN + 30 * 86_400)])
    (a,) = results(engine, TRIAL).arms
    assert a.quality["feedback"] == (1.0, 1)


def test_a_sampled_verdict_stands_for_all_that_were_not_drawn(engine):
    write(
        engine,
        many("a", 3),
        [
            sampled("a0000", 1.0, propensity=0.1),
            sampled("a0001", 0.0, propensity=0.5),
            sampled("a0002", None),
            sampled("a0002", 1.0, index=10, tier="large"),  # not the answer that was served
        ],
    )
    (a,) = results(engine, TRIAL).arms
    assert a.quality == {"judge:expert": (pytest.approx(10 / 12), 2)}


def test_a_judge_by_whose_word_an_arm_acts_says_nothing_of_quality(engine):
    write(
        engine,
        [*many("a", 2), *many("b", 1)],
        [
            sampled("a0000", 1.0),
            sampled("a0001", 1.0, judge="told"),
            called("b0000", judge="told", score=0.9),
        ],
    )
    found = results(engine, TRIAL)
    assert list(found.arms[0].quality) == ["judge:expert"]
    assert found.acting == ["told"]


def test_a_preference_counts_for_the_arm_whichever_answer_was_named_first(engine):
    arms = [*many("a", 60), *many("b", 60)]
    words = [
        said(f"b{i:04d}", compared_to=f"a{i:04d}", preferred="this" if i % 3 else "same")
        for i in range(30)
    ]
    words += [said(f"a{i:04d}", compared_to=f"b{i:04d}", preferred="other") for i in range(30, 60)]
    words += [said("a0000", source="x", compared_to="a0001", preferred="this")]  # of one arm
    words += [said("a0002", tenant="not mine", compared_to="b0002", preferred="this")]
    write(engine, arms, words=words)
    (comparison,) = results(engine, TRIAL).comparisons
    preferred = comparison.quality[PREFERENCE]
    assert preferred.arm == pytest.approx(55 / 60)
    assert preferred.interval.low > 0
    assert comparison.source is None  # which is better is not how good


def test_differences_are_those_of_the_units_in_numpy(engine):
    random = np.random.default_rng(1)
    asking, per_unit = [], {"a": [], "b": []}
    for unit in range(400):
        arm = "ab"[unit % 2]
        costs = np.round(random.lognormal(-6, 0.5, random.integers(1, 5)), 9)
        per_unit[arm].append((costs.sum(), len(costs)))
        asking += [
            asked(f"{unit}-{i}", arm, unit=f"u{unit}", dollars=cost) for i, cost in enumerate(costs)
        ]
    write(engine, asking)
    found = measure(engine, TRIAL).ratios["cost"]
    for arm, pairs in per_unit.items():
        s, n = np.array(pairs).T
        assert found[arm].units == 200
        assert found[arm].s == pytest.approx(s.sum())
        assert (found[arm].ss, found[arm].sn, found[arm].nn) == (
            pytest.approx((s * s).sum()),
            pytest.approx((s * n).sum()),
            pytest.approx((n * n).sum()),
        )
    (comparison,) = results(engine, TRIAL).comparisons
    ratio = [
        np.array(per_unit[arm])[:, 0].sum() / np.array(per_unit[arm])[:, 1].sum() for arm in "ba"
    ]
    assert comparison.cost.interval.estimate == pytest.approx(ratio[0] / ratio[1] - 1)


def test_what_units_spent_before_narrows_the_interval_of_the_cost(engine):
    random = np.random.default_rng(2)
    asking = []
    for user in range(200):
        name, habit = f"user {user}", math.exp(random.normal())
        earlier = {"experiment": None, "created_at": BEGUN - 1000, "dollars": 0.01 * habit}
        asking += [
            asked(f"{user}-before-{i}", None, end_user=name, unit="", **earlier) for i in range(3)
        ]
        asking.append(
            asked(
                f"{user}-now",
                "ab"[user % 2],
                unit=name,
                end_user=name,
                dollars=0.01 * habit * math.exp(random.normal(0, 0.1)),
            )
        )
    asking.append(
        asked(
            "long-ago",
            None,
            experiment=None,
            end_user="user 0",
            unit="",
            created_at=BEGUN - BEFORE_SECONDS - 1,
            dollars=1e6,
        )
    )
    write(engine, asking)
    by_user = Trial(name="auto", control="a", unit="user", since=BEGUN)
    (narrow,) = results(engine, by_user).comparisons
    (wide,) = results(
        engine, Trial(name="auto", control="a", unit="request", since=BEGUN)
    ).comparisons
    assert wide.cost.reduced == 0
    assert narrow.cost.reduced > 0.9
    width = narrow.cost.interval.high - narrow.cost.interval.low
    assert width < 0.4 * (wide.cost.interval.high - wide.cost.interval.low)


def test_what_units_did_in_an_arm_is_not_taken_out_of_what_the_arms_differ_by(engine):
    random = np.random.default_rng(3)
    asking = []
    for user in range(300):
        name, arm, habit = f"user {user}", "ab"[user % 2], math.exp(random.normal())
        spent = 0.01 * habit * (0.5 if arm == "b" else 1.0)
        for when, at in (("first", BEGUN), ("later", BEGUN + 1000)):
            dollars = spent * math.exp(random.normal(0, 0.05))
            row = {"unit": name, "end_user": name, "created_at": at, "dollars": dollars}
            asking.append(asked(f"{user}-{when}", arm, **row))
    write(engine, asking)
    late = Trial(name="auto", control="a", unit="user", since=BEGUN + 500)
    (seen,) = results(engine, late).comparisons
    assert seen.cost.reduced == 0
    assert seen.cost.interval.estimate == pytest.approx(seen.cost.arm / seen.cost.control - 1)
    assert seen.cost.interval.high < 0


def test_units_whose_cost_is_not_known_are_no_ground_for_an_interval_of_the_cost(engine):
    write(
        engine,
        [
            *(asked(f"a{i}", "a", dollars=0.01 + i * 1e-5) for i in range(100)),
            *(asked(f"b{i}", "b", dollars=0.005 if i == 0 else None) for i in range(100)),
        ],
    )
    (seen,) = results(engine, TRIAL).comparisons
    assert (seen.cost.interval, seen.cost.needs, seen.cost.units) == (None, 49, 101)
    assert seen.rates["error_rate"].interval is not None


def test_units_whose_cost_is_not_known_leave_the_rest_as_it_is_without_them(engine):
    random = np.random.default_rng(4)
    known, unknown = [], []
    for user in range(200):
        name, habit = f"user {user}", math.exp(random.normal())
        before = {"experiment": None, "created_at": BEGUN - 1000, "unit": "", "end_user": name}
        now = {"unit": name, "end_user": name}
        rows = [
            asked(f"{user}-before", None, dollars=0.01 * habit, **before),
            asked(
                f"{user}-now",
                "ab"[user % 2],
                dollars=0.01 * habit * math.exp(random.normal(0, 0.1)),
                **now,
            ),
        ]
        if user % 3:
            known += rows
        else:
            rows[1]["cost_pico"] = None
            unknown += rows
    by_user = Trial(name="auto", control="a", unit="user", since=BEGUN)
    write(engine, known)
    (without,) = results(engine, by_user).comparisons
    write(engine, unknown)
    (beside,) = results(engine, by_user).comparisons
    assert without.cost.reduced > 0.9
    assert beside.cost.units == without.cost.units
    for bound in ("low", "estimate", "high"):
        found, expected = (getattr(each.cost.interval, bound) for each in (beside, without))
        assert found == pytest.approx(expected)


def test_a_premium_that_is_not_known_is_not_nothing(engine):
    write(engine, [asked("a1", "a")], [called("a1", outcome="accepted")])
    (a,) = results(engine, TRIAL).arms
    assert a.cold_premium is None


def test_what_was_said_of_units_before_narrows_the_interval_of_their_quality(engine):
    asking, words = [], []
    for user in range(200):
        name, pleased = f"user {user}", float(user // 2 % 2)
        earlier = {"experiment": None, "created_at": BEGUN - 1000, "unit": ""}
        asking.append(asked(f"{user}-before", None, end_user=name, **earlier))
        asking.append(asked(f"{user}-now", "ab"[user % 2], unit=name, end_user=name))
        words += [said(f"{user}-before", pleased), said(f"{user}-now", 0.2 + 0.6 * pleased)]
    write(engine, asking, words=words)
    by_user = Trial(name="auto", control="a", unit="user", since=BEGUN)
    (narrow,) = results(engine, by_user).comparisons
    (wide,) = results(engine, replace(by_user, unit="request")).comparisons
    assert (narrow.quality["feedback"].reduced, wide.quality["feedback"].reduced) == (
        pytest.approx(0.85, abs=0.15),
        0.0,
    )


def test_shares_are_held_against_the_weights(engine):
    write(engine, [*many("a", 300), *many("b", 100)])
    assert results(engine, TRIAL).shares.broken
    right = Trial(name="auto", control="a", weights={"a": 3, "b": 1}, since=BEGUN)
    assert not results(engine, right).shares.broken
    assert results(engine, Trial(name="auto", control="a")).shares is None


def test_of_nothing_there_are_no_results(engine):
    found = results(engine, TRIAL)
    assert (found.arms, found.comparisons, found.crossed) == ([], [], 0)
