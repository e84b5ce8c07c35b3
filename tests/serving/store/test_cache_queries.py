from dataclasses import replace

import pytest
from sqlalchemy import Engine

from cascade.errors import RequestError
from cascade.types import Choice, Kind, Step
from serving.store.cache_queries import calls, prompt_by_id
from tests.builders import completion, failed
from tests.serving.doctor.logs import START, asked, stored


@pytest.fixture
def log(engine: Engine) -> Engine:
    """Seven requests, two of them at the same moment."""
    at = [0, 10, 10, 20, 30, 40, 50]
    stored(
        engine,
        [
            asked(f"r{n}", seconds, 0, "u1", session=f"s{n % 2}", tenant="acme" if n else "other")
            for n, seconds in enumerate(at)
        ],
    )
    return engine


@pytest.mark.parametrize("page", [1, 2, 3, 7, 100])
def test_calls_come_in_order_each_once_however_they_are_paged(log: Engine, page: int) -> None:
    assert [call.request_id for call in calls(log, page=page)] == [f"r{n}" for n in range(7)]


def test_calls_can_be_narrowed(log: Engine) -> None:
    assert [c.request_id for c in calls(log, since=START + 35)] == ["r5", "r6"]
    assert [c.request_id for c in calls(log, tenant="other")] == ["r0"]
    assert [c.request_id for c in calls(log, session="s1", page=1)] == ["r1", "r3", "r5"]


def test_a_call_has_what_its_row_says(engine: Engine) -> None:
    stored(engine, [asked("r", 5, 400, "u1", written="1h", replica="a")])
    (call,) = calls(engine)
    assert (call.cold_tokens, call.read_tokens, call.prompt_tokens) == (1300, 400, 1700)
    assert (call.began, call.first_token, call.ended) == (START + 5, START + 6, START + 7)
    assert (call.kept_seconds, call.replica, call.asks_tools) == (3600, "a", False)
    assert call.paid.premium == 1300 * 3_450_000
    assert call.paid.total == 1300 * 3_750_000 + 400 * 300_000 + 100 * 15_000_000
    assert call.prompt is not None
    assert call.prompt.tokens == 1700


def test_a_call_that_ends_by_calling_tools_is_known_as_such(engine: Engine) -> None:
    one = asked("r", 0, 0, "u1")
    (made,) = one.attempts
    tools = completion(choices=(Choice(finish_reason="tool_calls"),))
    stored(engine, [replace(one, attempts=(replace(made, completion=tools),))])
    assert [call.asks_tools for call in calls(engine)] == [True]


def test_what_sends_another_prompt_or_never_came_about_is_left_out(engine: Engine) -> None:
    one = asked("r", 0, 0, "u1")
    more = (
        one.attempts[0],
        replace(one.attempts[0], index=1, kind=Kind.JUDGE),
        failed(2, tier="large"),
        replace(one.attempts[0], index=3, kind=Kind.PREWARM),
    )
    stored(engine, [replace(one, attempts=more)])
    assert len(list(calls(engine))) == 2


def test_a_shadow_call_is_one_of_the_prompt_and_its_verdict_is_none(engine: Engine) -> None:
    one = asked("r", 0, 0, "u1")
    (made,) = one.attempts
    shadow = replace(made, index=1, kind=Kind.SHADOW)
    verdict = replace(shadow, index=2, step=Step(tier="large", judge="quality"), completion=None)
    stored(engine, [replace(one, attempts=(made, shadow, verdict))])
    assert len(list(calls(engine))) == 2


def test_a_prompt_is_found_by_the_beginning_of_its_id(log: Engine) -> None:
    found = prompt_by_id(log, "r3")
    assert found[0] == "r3"
    assert found[1] is not None
    with pytest.raises(RequestError, match="begins with 'x'"):
        prompt_by_id(log, "x")
    with pytest.raises(RequestError, match="several requests"):
        prompt_by_id(log, "r")


def test_a_prompt_without_segments_is_none(engine: Engine) -> None:
    stored(engine, [replace(asked("r", 0, 0, "u1"), fingerprint=None)])
    assert prompt_by_id(engine, "r") == ("r", None)
