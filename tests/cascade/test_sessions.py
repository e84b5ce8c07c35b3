"""A session that had to go up is expected to again, for a while."""

import pytest

from cascade.errors import JudgeError
from cascade.sessions import DOWN, UP, SessionHistory
from cascade.types import Kind, Outcome, Step
from tests import builders
from tests.engines import Bench, FixedJudge, request, tier


def rejected(**overrides):
    step = Step(tier="small", judge="told")
    values = {"step": step, "outcome": Outcome.REJECTED, "verdict": builders.verdict(0.2)}
    return builders.attempt(0, **{**values, **overrides})


WENT_UP = (rejected(), builders.attempt(1, tier="large"))
STAYED = (builders.attempt(0),)


def turns(history, *attempts, **whose):
    """The escalation after those turns."""
    asked = builders.request(**whose)
    for each in attempts:
        history.learn(asked, each)
    return history.recall(asked).escalation


def test_a_session_that_nothing_is_known_of_has_none():
    asked = builders.request()
    assert SessionHistory().recall(asked) is asked
    assert turns(SessionHistory(), STAYED, STAYED) == 0.0


def test_it_goes_up_fast_and_comes_down_slowly():
    assert turns(SessionHistory(), WENT_UP) == UP
    assert turns(SessionHistory(), WENT_UP, WENT_UP) == pytest.approx(0.75)
    calm = turns(SessionHistory(), WENT_UP, STAYED, STAYED, STAYED)
    assert calm == pytest.approx(UP * DOWN**3)
    assert calm > UP / 2


def test_after_enough_calm_turns_it_is_forgotten():
    history = SessionHistory()
    assert turns(history, WENT_UP, *[STAYED] * 40) == 0.0
    assert history.remembered == 0


def test_it_never_leaves_zero_to_one():
    assert turns(SessionHistory(), *[WENT_UP] * 50) <= 1.0


@pytest.mark.parametrize(
    ("attempts", "why"),
    [
        ((builders.failed(0), builders.attempt(1, tier="large")), "the small tier was down"),
        ((rejected(verdict=None), builders.attempt(1, tier="large")), "the judge failed"),
        ((builders.attempt(0, tier="large"),), "it began at the large tier"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_asked_was_not_too_hard_when(attempts, why):
    assert turns(SessionHistory(), attempts) == 0.0


def test_a_rejected_answer_counts_also_when_it_is_given_for_want_of_a_better():
    last = builders.failed(1, tier="large")
    assert turns(SessionHistory(), (rejected(), last)) == UP


def test_a_turn_that_nothing_answered_says_nothing():
    history = SessionHistory()
    turns(history, WENT_UP)
    assert turns(history, (builders.failed(0),)) == UP
    assert turns(history, ()) == UP


def test_a_request_without_a_session_has_no_history():
    assert turns(SessionHistory(), WENT_UP, session="") == 0.0


def test_tenants_do_not_share_a_session_of_one_name():
    history = SessionHistory()
    turns(history, WENT_UP, tenant="a", session="bc")
    assert turns(history, tenant="a", session="bc") == UP
    assert turns(history, tenant="b", session="bc") == 0.0
    assert turns(history, tenant="ab", session="c") == 0.0


def test_only_so_many_sessions_are_remembered_the_latest_ones():
    history = SessionHistory(max_sessions=3)
    for name in "abc":
        turns(history, WENT_UP, session=name)
    turns(history, STAYED, session="a")
    turns(history, WENT_UP, session="d")
    assert history.remembered == 3
    assert turns(history, session="b") == 0.0
    assert turns(history, session="a") > 0.0


async def test_the_engine_tells_the_estimator_and_the_log_how_the_session_fared():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(0.1, 0.9))
    first = await bench.run(builders.request(session="s"))
    second = await bench.run(builders.request(session="s"))
    third = await bench.run(builders.request(session="other"))
    assert first.beliefs.features == {"escalation": 0.0}
    assert second.beliefs.features == {"escalation": UP}
    assert second.request.escalation == UP
    assert third.beliefs.features == {"escalation": 0.0}


async def test_a_judge_that_is_broken_does_not_mark_the_session_as_hard():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(JudgeError("down")))
    result = await bench.run(builders.request(session="s"))
    assert [a.step.tier for a in result.attempts if a.kind is Kind.ANSWER] == ["small", "large"]
    assert bench.engine.sessions.recall(builders.request(session="s")).escalation == 0.0


async def test_a_request_without_a_session_keeps_its_features_as_they_are():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(0.9))
    assert (await bench.run(request())).beliefs.features == {}
