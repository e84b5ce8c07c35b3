"""Runs the code of an answer against tests: the one judge that can be sure of being right.

The tests come with the request, in a tag, or are the doctests of its last ask. What runs is written
by a model, so nothing does unless the configuration says so in plain words, and then only as
`judges.sandbox` lets it.
"""

import asyncio
import doctest
import re
import textwrap
import warnings
from typing import Final

from cascade.conversation import last_ask
from cascade.errors import ConfigError
from cascade.types import ChatRequest, Completion, Json, Verdict
from judges.sandbox import Isolation, RunResult, run_python

_BLOCK: Final = re.compile(
    r"^ {0,3}```[ \t]*(\w*)[^\n]*\n(.*?)^ {0,3}```[ \t]*$", re.DOTALL | re.MULTILINE
)
_FENCE: Final = re.compile(r"^\s*(?:```.*|\"{3}|'{3})\s*$", re.MULTILINE)
_PYTHON: Final = frozenset({"", "py", "python", "python3"})
_DOCTESTS: Final = """\
import doctest as _doctest
_examples = _doctest.DocTestParser().get_doctest({text!r}, globals(), "ask", None, 0)
_failed = _doctest.DocTestRunner(verbose=False).run(_examples).failed
assert not _failed, f"{{_failed}} of {{len(_examples.examples)}} examples of the request fail"
"""


class CodeJudge:
    """1 when the answer's Python passes the request's tests, 0 and final when it does not.

    Args:
        name: how verdicts call it.
        allow_execution: must be true: code that a model wrote is run on this machine.
        tests_tag: the tag of a request that holds a Python program, which is run after the
            answer's code in the same namespace and raises if something is wrong.
        doctests: whether examples with `>>>` in the last ask are tests where the tag is missing.
        seconds: of one run.
        memory_mib: of one run.
        concurrent: runs at once; further ones wait.
        isolation: "full" runs nothing where the kernel lacks a wall, "best" takes those there are.
    """

    def __init__(
        self,
        *,
        name: str = "code",
        allow_execution: bool = False,
        tests_tag: str = "tests",
        doctests: bool = True,
        seconds: float = 5.0,
        memory_mib: int = 256,
        concurrent: int = 2,
        isolation: Isolation = "full",
    ) -> None:
        if not allow_execution:
            raise ConfigError(
                "it runs code that models wrote on this machine; read docs/judges.md, then set "
                "allow_execution: true",
                param="allow_execution",
            )
        limits = {"seconds": seconds, "memory_mib": memory_mib, "concurrent": concurrent}
        for option, value in limits.items():
            if value <= 0:
                raise ConfigError("it must be above 0", param=option)
        self.name = name
        self.needs: Json = {}
        self._tests_tag = tests_tag
        self._doctests = doctests
        self._seconds = seconds
        self._memory_mib = memory_mib
        self._isolation = isolation
        self._running = asyncio.Semaphore(concurrent)

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """Whether the tests pass; None when there are none.

        Raises:
            JudgeError: the code could not be run.
        """
        tests = request.tags.get(self._tests_tag) or self._examples(request)
        if not tests:
            return Verdict(judge=self.name, score=None, reason="the request has no tests")
        source = python_of(completion.text)
        if source is None:
            return self._verdict(RunResult(ok=False, output="", why="the answer has no Python"))
        async with self._running:
            return self._verdict(await asyncio.to_thread(self._run, source, tests))

    def _run(self, source: str, tests: str) -> RunResult:
        return run_python(
            source,
            tests=tests,
            seconds=self._seconds,
            memory_mib=self._memory_mib,
            isolation=self._isolation,
        )

    def _examples(self, request: ChatRequest) -> str | None:
        if not self._doctests:
            return None
        # What ends a docstring or a code block would be taken for the expected output.
        text = _FENCE.sub("", last_ask(request.messages))
        try:
            examples = doctest.DocTestParser().get_examples(text)
        except ValueError:
            return None  # something like a doctest, but none
        with_result = any(example.want or example.exc_msg for example in examples)
        return _DOCTESTS.format(text=text) if with_result else None

    def _verdict(self, run: RunResult) -> Verdict:
        return Verdict(
            judge=self.name,
            score=float(run.ok),
            final=not run.ok,
            features={"passed": float(run.ok)},
            reason="the tests pass" if run.ok else run.why,
        )


def python_of(text: str) -> str | None:
    """The Python of an answer: its fenced blocks one after another, or the text if it is code."""
    blocks = [code for language, code in _BLOCK.findall(text) if language.lower() in _PYTHON]
    source = "\n".join(textwrap.dedent(block) for block in blocks) if blocks else text
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(source, "<answer>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # A block that is broken is still the answer's code; prose is not.
        return source if blocks else None
    return source if source.strip() else None
