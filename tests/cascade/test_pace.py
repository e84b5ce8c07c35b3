import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.backends.scripted import Script
from cascade.pace import Pace
from cascade.quote import Quote
from cascade.types import Attempt, Usage
from tests import builders
from tests.engines import SMALL_THEN_LARGE, Bench, FixedJudge, tier


def answered(prompt: int, output: int, first: float, seconds: float, **usage: int) -> Attempt:
    used = builders.usage(**{"input": prompt, "cache_read": 0, "output": output, **usage})
    return builders.attempt(
        completion=builders.completion(usage=used), first_token_seconds=first, seconds=seconds
    )


def expected(pace: Pace, prompt: int, output: int, **quote: int) -> float | None:
    asked = Quote(tier="small", cold_tokens=prompt, expected_output_tokens=output, **quote)
    return pace.seconds(asked)


def test_a_tier_that_has_not_answered_has_no_expected_time():
    pace = Pace()
    pace.observe(answered(100, 11, 0.5, 1.5))
    assert pace.seconds(Quote(tier="large")) is None
    assert expected(pace, 100, 11) == pytest.approx(1.5)


def test_a_line_through_prompts_of_several_lengths_is_found():
    pace = Pace()
    for prompt in (500, 4000, 1000, 8000, 2000):
        first = 0.2 + prompt / 1000
        pace.observe(answered(prompt, 101, first, first + 100 * 0.02))
    assert expected(pace, 6000, 51) == pytest.approx(0.2 + 6 + 50 * 0.02, rel=0.01)


def test_prompts_that_are_alike_say_nothing_of_long_ones():
    pace = Pace()
    for prompt, first in ((100, 0.10), (101, 0.15), (99, 0.05), (100, 0.10)):
        pace.observe(answered(prompt, 11, first, first + 1))
    assert expected(pace, 8000, 11) == pytest.approx(1.1, abs=0.3)


def test_a_prompt_is_never_expected_to_take_less_for_being_longer():
    pace = Pace()
    pace.observe(answered(100, 11, 2.0, 3.0))
    pace.observe(answered(8000, 11, 0.5, 1.5))
    assert expected(pace, 20000, 11) >= expected(pace, 10, 11) > 0


def test_tokens_read_from_a_cache_take_no_time():
    pace = Pace()
    for cold in (100, 2000):
        pace.observe(answered(cold, 11, cold / 1000, cold / 1000 + 1, cache_read=5000))
    assert expected(pace, 1000, 11, warm_tokens=9000) == pytest.approx(2.0, rel=0.01)


def test_old_answers_are_forgotten():
    pace = Pace(keep=0.9)
    for _ in range(50):
        pace.observe(answered(100, 11, 10.0, 20.0))
    for _ in range(60):
        pace.observe(answered(100, 11, 0.1, 1.1))
    assert expected(pace, 100, 11) == pytest.approx(1.1, rel=0.05)


def test_reasoning_counts_as_output():
    pace = Pace()
    pace.observe(answered(100, 1, 0.5, 2.5, reasoning=20))
    assert expected(pace, 100, 11) == pytest.approx(0.5 + 1.0)


@pytest.mark.parametrize(
    "attempt",
    [
        answered(100, 11, None, 1.0),
        answered(None, 11, 0.5, 1.0),
        answered(100, None, 0.5, 1.0),
        builders.attempt(completion=None),
    ],
)
def test_an_answer_that_does_not_say_what_it_used_teaches_nothing(attempt):
    pace = Pace()
    pace.observe(attempt)
    assert expected(pace, 100, 11) is None


def test_answers_of_a_single_token_do_not_say_how_fast_the_next_comes():
    pace = Pace()
    pace.observe(answered(100, 1, 0.5, 0.5))
    assert expected(pace, 100, 11) is None


@given(
    seen=st.lists(
        st.tuples(
            st.integers(0, 100_000),
            st.integers(0, 1000),
            st.floats(0, 60),
            st.floats(0, 60),
        ),
        max_size=30,
    ),
    prompt=st.integers(0, 200_000),
    output=st.integers(0, 5000),
)
def test_what_it_expects_is_never_negative_and_grows_with_the_answer(seen, prompt, output):
    pace = Pace()
    for tokens, answer, first, more in seen:
        pace.observe(answered(tokens, answer, first, first + more))
    seconds = expected(pace, prompt, output)
    assert seconds is None or 0 <= seconds <= expected(pace, prompt, output + 100)


async def test_an_engine_learns_from_whole_answers_and_quotes_with_it():
    usage = Usage(input=10, cache_read=0, output=5)
    slow = Script(text="a b c d", token_seconds=0.005, first_token_seconds=0.02, usage=usage)
    bench = Bench(tier("small", slow), tier("large"), judge=FixedJudge(0.9), arm=SMALL_THEN_LARGE)
    first, second = await bench.run(), await bench.run()
    assert first.attempts[0].quote.seconds is None
    # An answer of 5 tokens where 256 were expected makes 130, of which four took at least 20 ms.
    assert second.attempts[0].quote.expected_output_tokens == 130
    assert 0.02 + 129 * 0.005 < second.attempts[0].quote.seconds < 20


async def test_an_answer_that_broke_off_teaches_nothing():
    cut = Script(text="a b", cut_after=1)
    bench = Bench(tier("small", cut), tier("large"), judge=FixedJudge(0.9), arm=SMALL_THEN_LARGE)
    await bench.run()
    assert (await bench.run()).attempts[0].quote.seconds is None


def test_what_a_prompt_token_takes_is_told_once_prompts_show_it():
    pace = Pace()
    assert pace.prompt_token_seconds("small") is None
    pace.observe(answered(100, 11, 0.5, 1.5))
    assert pace.prompt_token_seconds("small") is None
    for prompt in (500, 4000, 1000, 8000, 2000):
        pace.observe(answered(prompt, 101, 0.2 + prompt / 1000, 9.0))
    assert pace.prompt_token_seconds("small") == pytest.approx(0.001, rel=0.05)
