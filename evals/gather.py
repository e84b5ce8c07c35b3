"""Asks each tier and each judge once what has not been asked yet, and appends what comes back.

One prompt at a time goes to each model, the models work side by side: a small machine gains nothing
from more, and the seconds stay comparable. A prompt that gets no answer is not written down, so
that the next run asks it again.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from cascade.answers import has_content
from cascade.errors import BackendError, BackendProtocolError, JudgeError
from cascade.protocols import Backend
from cascade.tiers import ModelTier
from cascade.types import ChatRequest, Completion
from evals.compact import compact
from evals.datasets import Prompt
from evals.outcomes import Answer, Key, Row, Sample
from evals.outcomes_file import OutcomesFile

TOP_LOGPROBS = 5
SAMPLE_TEMPERATURE = 0.8
SAMPLES = 4
SHORT_TOKENS = 64
"""Prompts whose answers may be longer are not sampled."""

PHASES: Final = ("answers", "samples", "judges")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row to be had.

    Attributes:
        key: the row's key.
        tier: the model that is asked for it.
        make: asks, and gives the row.
        after: tiers whose answers must all have been asked for before.
    """

    key: Key
    tier: str
    make: Callable[[], Awaitable[Row]]
    after: tuple[str, ...] = ()


@dataclass(slots=True)
class Report:
    """What a run came to: rows added, and why others could not be had."""

    added: int = 0
    failures: list[str] = field(default_factory=list)


def answers(tiers: Mapping[str, Backend], prompts: Sequence[Prompt]) -> list[Task]:
    """Each tier's greedy answer to each prompt, with log probabilities."""
    return [
        Task(
            key=(Answer.KIND, prompt.id, tier),
            tier=tier,
            make=bind(_answer, tier, backend, prompt),
        )
        for tier, backend in tiers.items()
        for prompt in prompts
    ]


def samples(
    tiers: Mapping[str, Backend], prompts: Sequence[Prompt], *, tier: str, count: int = SAMPLES
) -> list[Task]:
    """Some more answers of one tier, at a temperature, to the prompts with short answers."""
    return [
        Task(
            key=(Sample.KIND, prompt.id, tier, index),
            tier=tier,
            make=bind(_sample, tier, tiers[tier], prompt, index),
        )
        for prompt in prompts
        if prompt.max_tokens <= SHORT_TOKENS
        for index in range(count)
    ]


def drawn(prompts: Iterable[Prompt]) -> list[Prompt]:
    """The prompts in an order that looks drawn by lot, and is the same for the same ids."""
    return sorted(prompts, key=lambda prompt: hashlib.sha256(prompt.id.encode()).digest())


async def run(
    tasks: Sequence[Task],
    file: OutcomesFile,
    done: Callable[[str], None],
) -> Report:
    """Do what is not in the file yet, a task at a time for each model.

    Args:
        tasks: in the order in which each model is to be asked, its answers first.
        file: takes the rows.
        done: told the tier after each task, whether it gave a row or not.
    """
    report = Report()
    left = [task for task in tasks if task.key not in file.rows]
    answered = _Answered(left)

    async def work(tier: str) -> None:
        for task in left:
            if task.tier == tier:
                await answered.wait(task.after)
                await _do(task, file, report)
                answered.count(task)
                done(tier)

    async with asyncio.TaskGroup() as group:
        for tier in {task.tier for task in left}:
            group.create_task(work(tier))
    return report


class _Answered:
    """Knows when a tier has been asked for the last of its answers."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = Counter(task.tier for task in tasks if task.key[0] == Answer.KIND)
        self._events = {tier: asyncio.Event() for tier in self._left}

    def count(self, task: Task) -> None:
        if task.key[0] == Answer.KIND:
            self._left[task.tier] -= 1
            if not self._left[task.tier]:
                self._events[task.tier].set()

    async def wait(self, tiers: Sequence[str]) -> None:
        for tier in tiers:
            if tier in self._events:
                await self._events[tier].wait()


async def _do(task: Task, file: OutcomesFile, report: Report) -> None:
    try:
        # Written before anything else can happen, so that no answer is asked for twice.
        file.append(await task.make())
        report.added += 1
    except (BackendError, JudgeError) as error:
        report.failures.append(f"{task.key[1]} ({task.tier}): {error.message}")


def bind(make: Callable[..., Awaitable[Row]], *arguments: Any) -> Callable[[], Awaitable[Row]]:
    """A task's `make`: the function with its arguments."""
    return lambda: make(*arguments)


async def _answer(tier: str, backend: Backend, prompt: Prompt) -> Answer:
    params = {**prompt.params(), "logprobs": True, "top_logprobs": TOP_LOGPROBS}
    completion, first, seconds = await ask(backend, prompt, params)
    return Answer(
        prompt=prompt.id,
        tier=tier,
        text=completion.text,
        finish_reason=completion.finish_reason,
        usage=completion.usage,
        params=_shaping(params),
        logprobs=compact(completion.logprobs),
        right=await asyncio.to_thread(prompt.right, completion.text),
        seconds=seconds,
        first_token_seconds=first,
    )


async def _sample(tier: str, backend: Backend, prompt: Prompt, index: int) -> Sample:
    params = {**prompt.params(), "temperature": SAMPLE_TEMPERATURE, "seed": index + 1}
    completion, _, seconds = await ask(backend, prompt, params)
    return Sample(
        prompt=prompt.id,
        tier=tier,
        index=index,
        text=completion.text,
        finish_reason=completion.finish_reason,
        usage=completion.usage,
        params=_shaping(params),
        right=await asyncio.to_thread(prompt.right, completion.text),
        seconds=seconds,
    )


async def ask(
    backend: Backend | ModelTier, prompt: Prompt, params: Mapping[str, Any]
) -> tuple[Completion, float | None, float]:
    """The completion, seconds until its first text, and seconds in all."""
    request = ChatRequest(id=prompt.id, messages=prompt.messages, params=params)
    began, first, completion = time.perf_counter(), None, None
    async with aclosing(backend.stream(request)) as chunks:
        async for chunk in chunks:
            if first is None and has_content(chunk.choices):
                first = since(began)
            completion = chunk.completion or completion
    if completion is None:
        raise BackendProtocolError("the stream ended without a completion")
    return completion, first, since(began)


def _shaping(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "response_format"}


def since(began: float) -> float:
    """Seconds since a reading of the performance counter, to the millisecond."""
    return round(time.perf_counter() - began, 3)
