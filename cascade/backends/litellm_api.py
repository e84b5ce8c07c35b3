"""Asks API models through litellm, which knows how each provider wants to be asked.

litellm takes seconds to import and reads files, environment and network if it is let, so it is
imported here only, when the first request comes, and kept from all that. What it may not do is
change a request unseen: a field it cannot translate goes to the provider as it is, or is refused.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from copy import deepcopy
from importlib.util import find_spec
from typing import Any, Final

import aiohttp

from cascade.answers import assemble
from cascade.backends.litellm_errors import translated
from cascade.backends.litellm_fields import Dialect
from cascade.backends.patience import Patience
from cascade.backends.usage import from_openai
from cascade.errors import BackendProtocolError, ConfigError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Chunk, Completion, Json, Usage

_ENVIRONMENT: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_MODE": "PRODUCTION",  # otherwise it loads .env from the folder it was started in
}

_OURS: Final = frozenset(
    {
        *("model", "messages", "tools", "stream", "stream_options", "timeout"),
        *("api_key", "api_base", "base_url", "num_retries", "max_retries", "shared_session"),
    }
)
"""Arguments that the backend itself sets."""


class LitellmBackend(Backend):
    """One model of an API provider.

    Providers with an OpenAI-style API get every field that the client sent, litellm's own names for
    things included. For the others a field is translated, or one of the provider's own that litellm
    knows, or refused; labels for OpenAI's platform (user, metadata, store, ...) are left out.
    litellm loses log probabilities and finish reasons when it streams, so a request for several
    choices or log probabilities is asked for as a whole and comes as one piece.
    Content that litellm would drop on its way to the provider is refused.

    Args:
        model: litellm's name for it, provider first, e.g. anthropic/claude-sonnet-4-6.
        api_key: the provider's key; without one litellm looks into the provider's own variable.
        url: address to use instead of the provider's own.
        first_token_seconds: until the first piece that carries any of the answer.
        total_seconds: until the whole answer.
        extra: further arguments of litellm's, e.g. {"api_version": ...}; a client's fields win.
    """

    def __init__(
        self,
        *,
        model: str,
        api_key: str | None = None,
        url: str | None = None,
        first_token_seconds: float = 120.0,
        total_seconds: float = 600.0,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        for name in _OURS.intersection(extra or ()):
            raise ConfigError("this is set by other keys of the tier", param=f"extra.{name}")
        if find_spec("litellm") is None:
            raise ConfigError(
                "litellm is not installed: pip install 'cascade-router[litellm]'", param="backend"
            )
        self._model = model
        self._address = {"api_key": api_key, "api_base": url}
        self._first_token_seconds = first_token_seconds
        self._total_seconds = total_seconds
        self._extra = dict(extra or {})
        self._loading = asyncio.Lock()
        self._litellm: Any = None
        self._dialect = Dialect()
        self._session: aiohttp.ClientSession | None = None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the provider; pieces as they come, then the completion."""
        await self._load()
        params = request.params
        whole = params.get("n") not in (None, 1) or bool(params.get("logprobs"))
        arguments = self._arguments(request, whole=whole)
        patience = Patience(
            self._model, first=self._first_token_seconds, total=self._total_seconds, whole=whole
        )
        answer = _Answer()
        with translated(self._model):
            response = await patience.wait(self._litellm.acompletion(**arguments))
            if whole:
                yield answer.take(response)
                yield Chunk(completion=answer.completion(_usage(response.usage)))
                return
            async with aclosing(response):
                while (piece := await patience.wait(anext(response, None))) is not None:
                    _refuse_made_up_end(response, piece)
                    chunk = answer.take(piece)
                    if chunk.choices:
                        patience.saw(chunk)
                        yield chunk
                yield Chunk(completion=answer.completion(_streamed_usage(response)))

    async def aclose(self) -> None:
        """Close the pooled connections."""
        if self._session is not None:
            await self._session.close()

    async def _load(self) -> None:
        async with self._loading:
            if self._litellm is None:
                library = await asyncio.to_thread(import_litellm)
                self._dialect = Dialect.of(library, self._model, self._address["api_base"])
                self._litellm = library

    def _arguments(self, request: ChatRequest, *, whole: bool) -> dict[str, Any]:
        self._dialect.check(request.messages)
        fields, rest = self._dialect.split(request.params)
        arguments = {
            **self._extra,
            **fields,
            **self._address,
            "model": self._model,
            # litellm tidies up in place what it is given.
            "messages": deepcopy(list(request.messages)),
            "stream": not whole,
            "timeout": self._total_seconds,
            "num_retries": 0,
            "max_retries": 0,
            "shared_session": self._open(),
        }
        if request.tools is not None:
            arguments["tools"] = deepcopy(list(request.tools))
        if not whole:
            arguments["stream_options"] = {"include_usage": True}
        if self._address["api_base"] and request.context:
            # A server of one's own choosing, not a provider, whom a trace is none of its business.
            own = self._extra.get("extra_headers") or {}
            arguments["extra_headers"] = {**own, **request.context}
        if rest:
            arguments["extra_body"] = {**(self._extra.get("extra_body") or {}), **rest}
        return arguments

    def _open(self) -> aiohttp.ClientSession:
        # A session belongs to the event loop it was made in, so it is made when first needed.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class _Answer:
    """What litellm has brought so far."""

    def __init__(self) -> None:
        self._model = ""
        self._choices: list[Sequence[Json]] = []

    def take(self, response: Any) -> Chunk:
        hidden = response.hidden_params or {}
        self._model = hidden.get("provider_response_model") or self._model or response.model or ""
        choices = [_piece(choice.model_dump()) for choice in response.choices]
        if choices:
            self._choices.append(choices)
        return Chunk(choices=choices, model=self._model)

    def completion(self, usage: Usage) -> Completion:
        if not self._choices:
            raise BackendProtocolError("the stream ended without an answer")
        return Completion(choices=assemble(self._choices), model=self._model, usage=usage)


def import_litellm() -> Any:
    """The library, kept quiet and from the network. The first call takes seconds."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import litellm  # noqa: PLC0415 - heavy: only who uses it pays for it

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    litellm.disable_stop_sequence_limit = True
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize  # a model may repeat itself
    # What goes wrong is raised, and told by who catches it.
    logger = logging.getLogger("LiteLLM")
    logger.handlers.clear()
    logger.setLevel(logging.CRITICAL)
    return litellm


def _refuse_made_up_end(stream: Any, piece: Any) -> None:
    """Every stream of litellm has a finish reason, also one that the provider never gave."""
    given = stream.received_finish_reason or stream.intermittent_finish_reason
    if given is None and any(choice.finish_reason for choice in piece.choices):
        raise BackendProtocolError("the stream ended before the answer was finished")


def _streamed_usage(stream: Any) -> Usage:
    """The last report among the provider's chunks; what litellm puts at the end may be a guess."""
    reports = [getattr(chunk, "usage", None) for chunk in stream.chunks]
    return _usage(next((report for report in reversed(reports) if report is not None), None))


def _usage(reported: Any) -> Usage:
    # litellm says 0 where nothing was reported; no prompt has 0 tokens.
    if reported is None or not reported.prompt_tokens:
        return Usage()
    return from_openai(reported.model_dump())


def _piece(choice: dict[str, Any]) -> Json:
    """A choice of litellm's as a chunk choice, without the fields that it fills with nothing."""
    said = _lean(choice.get("delta") or choice.get("message") or {})
    for index, call in enumerate(said.get("tool_calls") or ()):
        call.setdefault("index", index)
    rest = {
        k: v for k, v in choice.items() if k not in {"delta", "message"} and v not in (None, {})
    }
    return {**rest, "delta": said}


def _lean(value: Any) -> Any:
    if isinstance(value, dict):
        lean = {name: _lean(item) for name, item in value.items() if item is not None}
        return {name: item for name, item in lean.items() if item != {}}
    return [_lean(item) for item in value] if isinstance(value, list) else value
