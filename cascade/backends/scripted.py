"""A model that says what it is told to: for tests, benchmarks and trying a configuration out.

It behaves like the real ones where it matters: streams in pieces, reports usage and log
probabilities (or does not), is slow, breaks off, refuses. What it was asked is kept in `requests`.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from cascade import errors
from cascade.answers import assemble
from cascade.errors import BackendConnectionError, BackendError, ConfigError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Chunk, Completion, Json, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One answer.

    Attributes:
        text: what is answered, a token a word.
        tool_calls: tool calls in OpenAI's shape, sent before the end.
        finish_reason: how it ends.
        logprob: of every token; None reports none even when asked.
        first_token_seconds: wait before the first token.
        token_seconds: wait before each further token.
        cut_after: breaks the connection after so many tokens.
        error: name of a BackendError class to fail with before anything is sent.
        retry_after: seconds after which that error says to come back.
        usage: reported usage; None reports none.
        extra: further fields of the first delta.
    """

    text: str = "ok"
    tool_calls: Sequence[Json] = ()
    finish_reason: str = "stop"
    logprob: float | None = -0.05
    first_token_seconds: float = 0.0
    token_seconds: float = 0.0
    cut_after: int | None = None
    error: str | None = None
    retry_after: float | None = None
    usage: Usage | None = field(
        default_factory=lambda: Usage(input=10, cache_read=0, output=2),
    )
    extra: Json = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ConfigError when the wait cannot be said."""
        if self.retry_after is not None:
            _check_wait(self.retry_after, self.error)


class ScriptedBackend(Backend):
    """Plays its scripts in order; the last one is repeated."""

    def __init__(
        self,
        *,
        answers: Sequence[Script | str | Mapping[str, Any]] = ("ok",),
        model: str = "scripted",
    ) -> None:
        if not answers:
            raise ConfigError("a scripted backend needs at least one answer")
        self.requests: list[ChatRequest] = []
        self.closed = False
        self._scripts = [_script(answer) for answer in answers]
        self._model = model

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Play the next script."""
        script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        self.requests.append(request)
        if script.error is not None:
            raise _error(script.error, script.retry_after)
        sent: list[Sequence[Json]] = []
        for number, piece in enumerate(self._pieces(script, request)):
            await asyncio.sleep(script.token_seconds if number else script.first_token_seconds)
            if number == script.cut_after:
                raise BackendConnectionError(f"cut after {number} tokens, as scripted")
            sent.append([piece])
            yield Chunk(choices=[piece], model=self._model)
        yield Chunk(
            model=self._model,
            completion=Completion(
                choices=assemble(sent),
                model=self._model,
                replica="scripted",
                usage=script.usage or Usage(),
            ),
        )

    async def aclose(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    @staticmethod
    def _pieces(script: Script, request: ChatRequest) -> Iterator[Json]:
        asked = request.params.get("logprobs") and script.logprob is not None
        extra = dict(script.extra)
        for index in range(request.params.get("n") or 1):
            for token in _tokens(script.text):
                piece: dict[str, Any] = {"index": index, "delta": {"content": token, **extra}}
                if asked:
                    piece["logprobs"] = {"content": [_entry(token, script, request)]}
                extra = {}
                yield piece
            if script.tool_calls:
                calls = [{"index": i, **call} for i, call in enumerate(script.tool_calls)]
                yield {"index": index, "delta": {"tool_calls": calls, **extra}}
            yield {"index": index, "delta": {}, "finish_reason": script.finish_reason}


def _script(answer: Script | str | Mapping[str, Any]) -> Script:
    if isinstance(answer, Script):
        return answer
    if isinstance(answer, str):
        return Script(text=answer)
    unknown = answer.keys() - {f.name for f in fields(Script)}
    if unknown:
        raise ConfigError(f"a scripted answer has no {', '.join(sorted(unknown))}")
    given = answer.get("usage")
    return Script(**{**answer, "usage": _usage(given)} if isinstance(given, Mapping) else answer)


def _usage(given: Mapping[str, Any]) -> Usage:
    unknown = given.keys() - {f.name for f in fields(Usage)}
    if unknown:
        raise ConfigError(f"a usage has no {', '.join(sorted(unknown))}")
    return Usage(**given)


def _check_wait(seconds: float, error: str | None) -> None:
    if error is None:
        raise ConfigError("a scripted answer with retry_after needs an error that says it")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds < math.inf:
        raise ConfigError(f"retry_after is a number of seconds from 0, not {seconds!r}")


def _error(name: str, retry_after: float | None) -> BackendError:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BackendError)):
        raise ConfigError(f"no backend error is called {name!r}")
    return kind(f"{name}, as scripted", retry_after=retry_after)


def _tokens(text: str) -> list[str]:
    words = text.split(" ")
    return [word if i == 0 else f" {word}" for i, word in enumerate(words)] if text else []


def _entry(token: str, script: Script, request: ChatRequest) -> Json:
    top = {"token": token, "logprob": script.logprob, "bytes": list(token.encode())}
    others = [{"token": f"<{i}>", "logprob": -9.0 - i, "bytes": [60, 62]} for i in range(1, 20)]
    count = request.params.get("top_logprobs") or 0
    return {**top, "top_logprobs": [top, *others][:count]}
