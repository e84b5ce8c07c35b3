import asyncio
import time

import pytest

from cascade.errors import ConfigError, JudgeError
from cascade.types import ChatRequest, Choice, Completion
from judges.code import CodeJudge, python_of
from judges.sandbox import run_python

RIGHT = "Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\nIt adds."
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"
DOCTESTS = (
    'Complete this:\n```python\ndef add(a, b):\n    """Adds.\n\n    >>> add(1, 2)\n    3\n'
    '    >>> add(2, 2)\n    4\n    """\n```\n'
)


def judging(text, *, tests=None, ask="Write add.", **options):
    tags = {} if tests is None else {"tests": tests}
    request = ChatRequest(id="r", messages=[{"role": "user", "content": ask}], tags=tags)
    judge = CodeJudge(allow_execution=True, isolation="best", **options)
    choice = Choice(text=text, finish_reason="stop")
    return judge.judge(request, Completion(choices=(choice,)))


async def test_code_that_passes_the_requests_tests_is_right_but_not_final():
    verdict = await judging(RIGHT, tests="assert add(1, 2) == 3")
    assert (verdict.score, verdict.final) == (1.0, False)


async def test_code_that_fails_them_is_wrong_and_final():
    verdict = await judging(WRONG, tests="assert add(1, 2) == 3, 'sum'")
    assert (verdict.score, verdict.final) == (0.0, True)
    assert "sum" in verdict.reason


@pytest.mark.parametrize(("text", "score"), [(RIGHT, 1.0), (WRONG, 0.0)])
async def test_examples_in_the_last_ask_are_tests(text, score):
    verdict = await judging(text, ask=DOCTESTS)
    assert verdict.score == score
    if not score:
        assert "2 of 2 examples" in verdict.reason


async def test_without_tests_it_cannot_tell():
    assert (await judging(RIGHT)).score is None
    assert (await judging(RIGHT, ask=DOCTESTS, doctests=False)).score is None
    assert (await judging(RIGHT, ask="What does `>>> ` mean?")).score is None


async def test_an_answer_without_code_fails_its_tests():
    verdict = await judging("You add them.", tests="assert add(1, 2) == 3")
    assert (verdict.score, verdict.reason) == (0.0, "the answer has no Python")


async def test_the_tests_may_come_in_another_tag_and_have_a_limit():
    request = ChatRequest(id="r", messages=[], tags={"check": "while True: pass"})
    judge = CodeJudge(allow_execution=True, isolation="best", tests_tag="check", seconds=0.3)
    verdict = await judge.judge(request, Completion(choices=(Choice(text=RIGHT),)))
    assert "ran out of time" in verdict.reason


async def test_the_event_loop_goes_on_while_code_runs():
    running = asyncio.create_task(judging(RIGHT, tests="import time; time.sleep(0.5)"))
    began, ticks = time.monotonic(), 0
    while not running.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert (await running).score == 1.0
    assert ticks > 10
    assert time.monotonic() - began < 5


async def test_no_more_runs_at_once_than_allowed():
    judge = CodeJudge(allow_execution=True, isolation="best", concurrent=1)
    tests = "import time; time.sleep(0.3)"
    request = ChatRequest(id="r", messages=[], tags={"tests": tests})
    completion = Completion(choices=(Choice(text=RIGHT),))
    began = time.monotonic()
    await asyncio.gather(*(judge.judge(request, completion) for _ in range(3)))
    assert time.monotonic() - began >= 0.9


async def test_full_isolation_is_the_default_and_lacking_it_is_an_error_not_a_verdict():
    judge = CodeJudge(allow_execution=True)
    request = ChatRequest(id="r", messages=[], tags={"tests": "pass"})
    try:
        run_python("pass", isolation="full")
    except JudgeError:
        with pytest.raises(JudgeError, match="isolation"):
            await judge.judge(request, Completion(choices=(Choice(text=RIGHT),)))
    else:
        verdict = await judge.judge(request, Completion(choices=(Choice(text=RIGHT),)))
        assert verdict.score == 1.0


def test_nothing_is_run_unless_it_is_allowed_in_plain_words():
    with pytest.raises(ConfigError, match="allow_execution: true") as caught:
        CodeJudge()
    assert caught.value.param == "allow_execution"


@pytest.mark.parametrize("option", ["seconds", "memory_mib", "concurrent"])
def test_a_limit_of_nothing_is_refused(option):
    with pytest.raises(ConfigError):
        CodeJudge(allow_execution=True, **{option: 0})


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("```py\na = 1\n```\nand\n```\nb = 2\n```", "a = 1\n\nb = 2\n"),
        ("```bash\nls\n```\n```python\na = 1\n```", "a = 1\n"),
        ("a = 1", "a = 1"),
        ("a = '\\d' is 1", "a = '\\d' is 1"),
        ("It is one.", None),
        ("", None),
        ("```python\na = = 1\n```", "a = = 1\n"),
        ("1. Do this:\n   ```python\n   a = 1\n   ```", "a = 1\n"),
    ],
)
def test_the_python_of_an_answer_is_found(text, source):
    assert python_of(text) == source
