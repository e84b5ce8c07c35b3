import math
from typing import Any

import pytest

from cascade.types import ChatRequest, Choice, Completion
from judges.working import WorkingJudge, features_of

QUESTION = "A box holds 12 eggs. Ann buys 3 boxes and breaks 4 eggs. How many eggs are left?"
GOOD = "She buys 3 * 12 = 36 eggs. After breaking 4 she has 36 - 4 = 32 eggs left."


def test_a_sound_answer_has_sums_that_work_out_and_end_in_its_number() -> None:
    seen = features_of(QUESTION, GOOD)
    assert seen["sums"] == 2
    assert seen["wrong_sums"] == 0
    assert seen["untraced"] == 0
    assert seen["unused"] == 0
    assert seen["final_computed_last"] == 1
    assert seen["ends_sentence"] == 1
    assert seen["counted_in_last"] == 1


def test_a_wrong_sum_an_unused_number_and_a_broken_end_are_seen() -> None:
    seen = features_of(QUESTION, "She buys 3 * 12 = 38 eggs, so (38")
    assert seen["wrong_sums"] == 1
    assert seen["unused"] == 1
    assert seen["unclosed"] == 1
    assert seen["ends_sentence"] == 0


def test_a_number_from_nowhere_is_seen() -> None:
    assert features_of(QUESTION, "3 * 17 = 51")["untraced"] == 1
    assert features_of(QUESTION, "3 * 12 = 36. 36 - 4 = 32")["untraced"] == 0


def test_half_an_egg_is_not_what_was_asked_for() -> None:
    assert features_of(QUESTION, "There are 31.5 left.")["fraction_counted"] == 1
    assert features_of("How much does it cost in dollars?", "It is 31.5.")["fraction_counted"] == 0


def test_a_marked_last_line_is_read_for_its_number_only() -> None:
    """Where a marker was added for a grader, it must not look like a better-formed answer."""
    marked, plain = features_of(QUESTION, GOOD + "\n#### 32"), features_of(QUESTION, GOOD)
    assert marked == plain


@pytest.mark.parametrize(
    "answer", ["", " ", "?", "\n\n", "= = =", "\ufeff", "1" * 5000, "." * 9999]
)
def test_features_are_the_same_and_finite_for_any_text(answer: str) -> None:
    seen = features_of("", answer)
    assert seen.keys() == features_of(QUESTION, GOOD).keys()
    assert all(math.isfinite(value) for value in seen.values())


async def test_no_text_is_cannot_tell_and_a_wrong_sum_is_zero() -> None:
    judge = WorkingJudge()
    request = ChatRequest(id="r", messages=[{"role": "user", "content": QUESTION}])

    async def score(text: str) -> float | None:
        return (await judge.judge(request, Completion(choices=[Choice(text=text)]))).score

    assert await score(GOOD) == 1.0
    assert await score("3 * 12 = 38") == 0.0
    assert await score(" ") is None


async def test_the_question_is_the_last_thing_a_person_said_whatever_its_form() -> None:
    parts = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": "x"}}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": parts},
        {"role": "tool", "content": "99"},
    ]
    verdict = await WorkingJudge().judge(
        ChatRequest(id="r", messages=messages), Completion(choices=[Choice(text=GOOD)])
    )
    assert verdict.features == features_of(QUESTION, GOOD)
