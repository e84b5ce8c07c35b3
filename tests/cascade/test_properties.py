"""What holds of every request, however its models and judges behave."""

import asyncio
import itertools
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cascade.answers import assemble
from cascade.backends.scripted import Script
from cascade.errors import JudgeError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import Rung
from cascade.result import AttemptFinished, Delta, Event
from cascade.types import FREE, Budget, Kind, Usage
from tests.engines import Bench, FixedJudge, card, ladder, request, tier

NAMES = ["a", "b", "c"]
ERRORS = ["BackendTimeoutError", "BackendRefusedError", "BackendUnreachableError"]
CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BROKEN = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{"}}


@st.composite
def scripts(draw: st.DrawFn, name: str) -> Script:
    usage = st.builds(
        Usage,
        input=st.integers(0, 2000),
        cache_read=st.none() | st.integers(0, 500),
        output=st.integers(0, 500),
    )
    return Script(
        text=" ".join([name] * draw(st.integers(0, 4))),
        error=draw(st.none() | st.sampled_from(ERRORS)),
        cut_after=draw(st.none() | st.integers(0, 4)),
        tool_calls=draw(st.sampled_from([(), (), (CALL,), (BROKEN,)])),
        usage=draw(st.none() | usage),
    )


@st.composite
def arms(draw: st.DrawFn) -> Arm:
    order = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
    if draw(st.booleans()):
        return Arm(name=None, policy=FixedPolicy(name="f", tier=order[0], fallback=order[1:]))
    rungs = [Rung(tier=name, judge="told", accept_at=0.5) for name in order]
    if draw(st.booleans()):
        rungs[-1] = Rung(tier=order[-1])
    return ladder(*rungs)


@st.composite
def benches(draw: st.DrawFn) -> Bench:
    scores = draw(
        st.lists(st.none() | st.floats(0, 1) | st.just(JudgeError("no", cost=FREE)), min_size=1)
    )
    tiers = [
        tier(name, draw(scripts(name)), prices=card(str(number), "0.1", str(2 * number)))
        for number, name in enumerate(NAMES, 1)
    ]
    return Bench(*tiers, judge=FixedJudge(*scores), arm=draw(arms()))


def play(bench: Bench, **limits: Any) -> list[Event]:
    budget = Budget(**limits) if limits else None
    return asyncio.run(bench.events(replace(request("x" * 400), budget=budget)))


@given(bench=benches())
def test_the_cost_is_the_sum_of_the_attempts_and_unknown_if_any_is(bench):
    result = play(bench)[-1].result
    costs = [attempt.cost for attempt in result.attempts]
    assert result.cost == (None if None in costs else sum(costs, FREE))
    assert [attempt.index for attempt in result.attempts] == list(range(len(costs)))
    assert bench.sink.results == [result]


@given(bench=benches())
def test_what_was_released_is_of_one_tier_and_is_the_answer(bench):
    events = play(bench)
    result = events[-1].result
    deltas = [event for event in events if isinstance(event, Delta)]
    assert len({delta.tier for delta in deltas}) <= 1
    if result.completion is not None:
        [told] = assemble(delta.choices for delta in deltas)
        assert (told.text, told.tool_calls) == (
            result.completion.text,
            result.completion.tool_calls,
        )
        assert {delta.tier for delta in deltas} <= {result.completion.tier}


@given(bench=benches())
def test_a_request_ends_with_an_answer_or_with_a_reason_for_none(bench):
    events = play(bench)
    result = events[-1].result
    assert (result.completion is None) is (result.error is not None)
    asked = [attempt for attempt in result.attempts if attempt.kind is Kind.ANSWER]
    finished = [event.attempt.index for event in events if isinstance(event, AttemptFinished)]
    assert finished == [attempt.index for attempt in asked]
    assert all(attempt.outcome is not None for attempt in asked)


@given(bench=benches(), dollars=st.decimals("0.0001", "0.01", places=5))
def test_no_call_is_begun_that_is_expected_to_exceed_the_budget(bench, dollars):
    result = play(bench, dollars=dollars)[-1].result
    costs = [attempt.cost for attempt in result.attempts]
    for attempt, spent in zip(result.attempts, itertools.count(), strict=False):
        if attempt.kind is Kind.ANSWER:
            before = sum((cost.total for cost in costs[:spent]), Decimal(0))
            assert before + attempt.quote.dollars <= dollars
    if not result.attempts:
        assert result.error.code == "budget_too_small"


@given(bench=benches(), quality=st.floats(0, 1))
def test_an_answer_that_is_not_degraded_reaches_the_wanted_quality_wherever_it_is_judged(
    bench, quality
):
    result = play(bench, quality=quality)[-1].result
    if result.completion is not None and not result.degraded:
        accepted = [a for a in result.attempts if a.outcome == "accepted"][-1]
        assert accepted.step.judge is None or accepted.verdict.score >= max(quality, 0.5)
