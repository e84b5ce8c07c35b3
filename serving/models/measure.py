"""How fast a model server is, as its price card wants to know it.

A machine's hour is shared out among tokens by the time each kind takes: those that are computed,
those that are read from the cache, and those of the answer. What takes the same time however many
tokens there are (the connection, the chat template, the first step) belongs to none of them, so
lengths are varied and the slope of a line is taken. Whatever else the machine does only ever makes
it slower, so of several tries at a length the fastest counts.
"""

import asyncio
import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median
from typing import Final

from cascade.errors import BackendProtocolError, BackendRefusedError, CascadeError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Json, Usage

_WORDS: Final = (
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about"
)
_STORY: Final = "Tell a very long story about a lighthouse, in many chapters."
_WHOLE: Final = {"ignore_eos": True}
"""Has vLLM, SGLang and llama.cpp write on to the limit, however short the answer would be."""
_MOST_ERROR: Final = 0.15
"""Standard error, as a share of the slope, above which that does not count as measured."""
_UPPER_END: Final = 2.0
"""Standard errors above a slope that was not measured, where it is taken to be at most."""
_ADVICE: Final = (
    "Run it on an idle machine, or with more --repeats or a larger --longest and --answer"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measurement: so many tokens took so many seconds, fixed ones included."""

    tokens: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What a line through the samples says.

    Attributes:
        tokens_per_second: the inverse of its slope.
        relative_error: standard error of the slope, as a share of it.
        fixed_seconds: what a request takes without any of these tokens.
        samples: all, by length.
        repeat_spread: how much longer the slowest try at a length took than the fastest, as a share
            of it; the median of the lengths.
        at_least: the slope could not be measured, and its upper end was taken instead.
    """

    tokens_per_second: float
    relative_error: float
    fixed_seconds: float
    samples: Sequence[Sequence[Sample]]
    repeat_spread: float = 0.0
    at_least: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """What a price card by GPU hour wants, besides the price of the hour.

    Attributes:
        cached: None where the server kept nothing.
    """

    prefill: Speed
    cached: Speed | None
    decode: Speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What is asked of the server.

    Attributes:
        prompts: lengths, in words of about a token each.
        answers: lengths in tokens.
        repeats: how often each.
        concurrent: answers that are written at the same time.
    """

    prompts: Sequence[int] = (500, 1000, 1500, 2000)
    answers: Sequence[int] = (32, 64, 96, 128)
    repeats: int = 3
    concurrent: int = 1

    @property
    def steps(self) -> int:
        """How often the progress is told."""
        return self.repeats * (2 * len(self.prompts) + len(self.answers))


async def measure(
    backend: Backend,
    trials: Trials,
    *,
    step: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Speeds:
    """Ask a server prompts and answers of several lengths, one kind after the other.

    Each prompt begins with something new, so that no cache knows it, and is sent once more at once,
    so that the cache does. What the server reports of tokens is believed, not what was meant.

    Args:
        backend: how the tier asks its server.
        trials: what is asked.
        step: told of each measurement.
        clock: seconds that only go up.

    Raises:
        BackendError: the server does not answer, or does not report what is needed.
        CascadeError: the measurements scatter too much to say anything.
    """
    ask = _Asking(backend, clock)
    await ask.first()
    cold: list[list[tuple[Usage, float]]] = [[] for _ in trials.prompts]
    warm: list[list[tuple[Usage, float]]] = [[] for _ in trials.prompts]
    answers: list[list[Sample]] = [[] for _ in trials.answers]
    for _ in range(trials.repeats):
        for i, words in enumerate(trials.prompts):
            prompt = _prompt(words)
            for tries in (cold[i], warm[i]):
                tries.append(await ask.timed(prompt, answer=1))
                step()
    await ask.together(1, trials.concurrent)  # its own prompt is read from the cache from here on
    for _ in range(trials.repeats):
        for i, length in enumerate(trials.answers):
            answers[i].append(await ask.together(length, trials.concurrent))
            step()
    computed = [[Sample(tokens=_new(u), seconds=s) for u, s in tries] for tries in cold]
    prefill = fitted("computing a prompt", computed)
    return Speeds(
        prefill=prefill, cached=_cached(warm, prefill), decode=fitted("answering", answers)
    )


def fitted(what: str, samples: Sequence[Sequence[Sample]], *, fast: bool = False) -> Speed:
    """The line of least squares through the fastest try at each length.

    Args:
        what: takes that time, for the error.
        samples: by length; of at least two lengths.
        fast: whether the slope may be too small to be measured; its upper end is taken then.

    Raises:
        CascadeError: there is only one length, or they scatter too much: unless it is `fast`, the
            standard error of the slope is above 15 % of it.
    """
    best = [min(tries, key=lambda each: each.seconds) for tries in samples]
    mean = fmean(each.tokens for each in best)
    middle = fmean(each.seconds for each in best)
    spread = sum((each.tokens - mean) ** 2 for each in best)
    if spread == 0:
        raise CascadeError(
            f"{what}: all measurements have {mean:g} tokens, through which there is no line"
        )
    slope = sum((each.tokens - mean) * (each.seconds - middle) for each in best) / spread
    fixed = middle - slope * mean
    rest = sum((each.seconds - fixed - slope * each.tokens) ** 2 for each in best)
    error = sqrt(rest / max(1, len(best) - 2) / spread)
    measured = slope > 0 and error <= _MOST_ERROR * slope
    taken = slope if measured else max(slope, 0.0) + _UPPER_END * error
    if taken <= 0 or not (measured or fast):
        raise CascadeError(
            f"{what} took {1000 * slope:.3g} ms a token, give or take {1000 * error:.3g}: too "
            f"uncertain for a price. {_ADVICE}"
        )
    return Speed(
        tokens_per_second=1 / taken,
        relative_error=error / taken,
        fixed_seconds=fixed,
        samples=samples,
        repeat_spread=median(_spread(tries) for tries in samples),
        at_least=not measured,
    )


def _spread(tries: Sequence[Sample]) -> float:
    """How much longer the slowest try took than the fastest, as a share of it."""
    fastest, slowest = (pick(each.seconds for each in tries) for pick in (min, max))
    return slowest / fastest - 1 if fastest > 0 else 0.0


def _cached(warm: Sequence[Sequence[tuple[Usage, float]]], prefill: Speed) -> Speed | None:
    """How fast what is cached is read; the few tokens that are computed all the same are taken off.

    Never slower than computing: no server reads what it computes faster.
    """
    read = [[(u.cache_read, u, took) for u, took in tries if u.cache_read] for tries in warm]
    if not all(read):
        return None
    samples = [
        [
            Sample(tokens=count, seconds=took - _new(usage) / prefill.tokens_per_second)
            for count, usage, took in tries
        ]
        for tries in read
    ]
    speed = fitted("reading a prompt from the cache", samples, fast=True)
    if speed.tokens_per_second < prefill.tokens_per_second:
        raise CascadeError(
            f"reading from the cache came out slower ({speed.tokens_per_second:.0f} tokens/s) than "
            f"computing ({prefill.tokens_per_second:.0f}). {_ADVICE}"
        )
    return speed


class _Asking:
    """Asks a server and looks at the clock."""

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        self._backend = backend
        self._clock = clock
        self._params: Json = {"temperature": 0, **_WHOLE}

    async def first(self) -> None:
        """Have done what is done once only, and see what the server takes."""
        try:
            await self._usage(_prompt(8), 1)
        except BackendRefusedError:
            self._params = {"temperature": 0}
            await self._usage(_prompt(8), 1)

    async def timed(self, prompt: str, *, answer: int) -> tuple[Usage, float]:
        """Usage and seconds of one request."""
        began = self._clock()
        usage = await self._usage(prompt, answer)
        return usage, self._clock() - began

    async def together(self, answer: int, concurrent: int) -> Sample:
        """Tokens and seconds of several answers at once, until the last of them is whole."""
        began = self._clock()
        usages = await asyncio.gather(*(self._usage(_STORY, answer) for _ in range(concurrent)))
        took = self._clock() - began
        written = sum((usage.output or 0) + (usage.reasoning or 0) for usage in usages)
        return Sample(tokens=written, seconds=took)

    async def _usage(self, prompt: str, answer: int) -> Usage:
        request = ChatRequest(
            id=uuid.uuid4().hex,
            session="measured",
            messages=[{"role": "user", "content": prompt}],
            params={**self._params, "max_tokens": answer},
        )
        usage = (await self._backend.complete(request)).usage
        if usage.input is None or usage.output is None:
            raise BackendProtocolError(
                "the server reports no usage, so nothing can be divided by tokens; it must honour "
                "stream_options: {include_usage: true}"
            )
        if usage.cache_read is None:
            raise BackendProtocolError(
                "the server does not report cached tokens; vLLM does with "
                "--enable-prompt-tokens-details"
            )
        return usage


def _prompt(words: int) -> str:
    """Words that no cache has seen in that order, from the first on."""
    chosen = random.choices(_WORDS.split(), k=words)  # noqa: S311 - no secret
    return f"{uuid.uuid4().hex} {' '.join(chosen)}"


def _new(usage: Usage) -> int:
    """Prompt tokens that were computed."""
    return (usage.input or 0) + sum((usage.cache_write or {}).values())
