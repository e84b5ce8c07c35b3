"""Asks any server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp and others.

Always streams upstream, so that one path serves streamed and whole answers, a cut is noticed at
once, and a client that leaves frees the model's slot. Connections are pooled and kept alive.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, Literal

import aiohttp
import orjson

from cascade.answers import assemble
from cascade.backends.http_errors import message_of, refusal, short, translated
from cascade.backends.kept import KeptConnections, Sending
from cascade.backends.patience import Patience
from cascade.backends.payload import payload
from cascade.backends.server_tokenizer import ServerTokenizer
from cascade.backends.sse import EventLines
from cascade.backends.usage import from_openai
from cascade.errors import (
    BackendConnectionError,
    BackendProtocolError,
    BackendServerError,
    ConfigError,
)
from cascade.protocols import Backend
from cascade.types import ChatRequest, Chunk, Completion, Json

_AFTER_DONE_SECONDS = 0.1
_KEEP_ALIVE_SECONDS = 4.0  # llama.cpp and vLLM close idle connections after five


class OpenAIHttpBackend(Backend):
    """One model on one OpenAI-compatible server.

    Args:
        url: base address that ends before /chat/completions, e.g. http://127.0.0.1:8000/v1.
        model: the model's name on that server.
        api_key: sent as a bearer token.
        connect_seconds: until the connection stands.
        first_token_seconds: until the first piece that carries any of the answer.
        total_seconds: until the whole answer.
        tokenizer: whose way of counting a prompt the server knows, if any.
        salt_key: a secret; with one, each tenant's requests get a `cache_salt` of its own.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: str | None = None,
        tokenizer: Literal["none", "llama_cpp", "vllm"] = "none",
        salt_key: bytes | None = None,
        connect_seconds: float = 3.0,
        first_token_seconds: float = 120.0,
        total_seconds: float = 600.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError("an address begins with http:// or https://", param="url")
        self._endpoint = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._first_token_seconds = first_token_seconds
        self._total_seconds = total_seconds
        self._timeout = aiohttp.ClientTimeout(total=total_seconds, sock_connect=connect_seconds)
        self._salt_key = salt_key
        self._session: aiohttp.ClientSession | None = None
        self.tokenizer = (
            None
            if tokenizer == "none"
            else ServerTokenizer(tokenizer, url=url, model=model, session=self._open)
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the server; pieces as they come, then the completion."""
        with translated(self._endpoint):
            patience = Patience(
                self._endpoint, first=self._first_token_seconds, total=self._total_seconds
            )
            async with await patience.wait(self._post(request)) as response:
                if not response.ok:
                    raise refusal(response, await response.read())
                answer = _Answer(replica=f"{response.url.host}:{response.url.port}")
                lines, read = EventLines(), response.content.readany
                while not answer.done:
                    # aiohttp keeps the time for the whole answer, at no cost a piece.
                    piece = await read() if patience.begun else await patience.wait(read())
                    if not piece:
                        break
                    for event in lines.feed(piece):
                        chunk = answer.take(event)
                        if chunk.choices:
                            patience.saw(chunk)
                            yield chunk
                yield Chunk(completion=answer.completion())
                await _read_to_the_end(response)

    async def aclose(self) -> None:
        """Close the pooled connections."""
        if self._session is not None:
            await self._session.close()

    async def _post(self, request: ChatRequest) -> aiohttp.ClientResponse:
        """Send the request; once more when a kept connection turns out to be closed already.

        No work was done then, so that is no failure of the model's. Any other failure is told: the
        model may have worked, and whoever asks it again has to count that.
        """
        session, sending = self._open(), Sending()
        try:
            return await session.post(
                self._endpoint,
                data=self._body(request),
                headers=request.context or None,
            )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not sending.was_in_vain:
                raise
        return await session.post(
            self._endpoint, data=self._body(request), headers=request.context or None
        )

    def _open(self) -> aiohttp.ClientSession:
        # A session belongs to the event loop it was made in, so it is made when first needed.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=KeptConnections(keepalive_seconds=_KEEP_ALIVE_SECONDS),
                timeout=self._timeout,
                headers=self._headers,
            )
        return self._session

    def _body(self, request: ChatRequest) -> bytes | io.BytesIO:
        body: dict[str, Any] = {
            **request.params,
            "model": self._model,
            "messages": request.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools is not None:
            body["tools"] = request.tools
        if self._salt_key is not None:
            body["cache_salt"] = _salt(self._salt_key, request)
        return payload(body)


def _salt(key: bytes, request: ChatRequest) -> str:
    """A tenant's own salt, which no other tenant can find out or send.

    What the client sent divides its tenant's cache further; as it came it would be a salt that
    another tenant may send as well.
    """
    parts = [request.tenant, request.params.get("cache_salt")]
    return blake2b(orjson.dumps(parts), key=key, digest_size=16).hexdigest()


class _Answer:
    """What a stream has brought so far."""

    def __init__(self, *, replica: str) -> None:
        self.done = False
        self._replica = replica
        self._model = ""
        self._usage: Json | None = None
        self._choices: list[Sequence[Json]] = []

    def take(self, event: bytes) -> Chunk:
        if event == b"[DONE]":
            self.done = True
            return Chunk()
        try:
            data = orjson.loads(event)
        except orjson.JSONDecodeError:
            raise BackendProtocolError(f"not JSON in the stream: {short(event)}") from None
        if not _is_chunk(data):
            raise BackendProtocolError(f"not a chunk of an answer: {short(event)}")
        if data.get("error"):
            raise BackendServerError(f"error in the stream: {message_of(event)}")
        choices = data.get("choices") or ()
        self._model = data.get("model") or self._model
        self._usage = data.get("usage") or self._usage
        if choices:
            self._choices.append(choices)
        return Chunk(choices=choices, model=self._model)

    def completion(self) -> Completion:
        choices = assemble(self._choices)
        if not self.done and any(choice.finish_reason is None for choice in choices):
            raise BackendConnectionError("the stream was cut before the answer was finished")
        if not self._choices:
            raise BackendProtocolError("the stream ended without an answer")
        return Completion(
            choices=choices,
            model=self._model,
            replica=self._replica,
            usage=from_openai(self._usage),
        )


# Made once: this is asked of every token.
_TEXT: Final = (str, type(None))
_OBJECT: Final = (dict, type(None))
_LIST: Final = (list, type(None))


def _is_chunk(data: Any) -> bool:
    """Whether what came has the shape that everything behind relies on."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("model"), _TEXT)
        and isinstance(data.get("usage"), _OBJECT)
        and isinstance(data.get("choices"), _LIST)
        and all(map(_is_choice, data.get("choices") or ()))
    )


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict) or not isinstance(choice.get("delta"), _OBJECT):
        return False
    delta, logprobs = choice.get("delta") or {}, choice.get("logprobs")
    calls, thoughts = delta.get("tool_calls"), delta.get("thinking_blocks")
    entries = logprobs.get("content") if isinstance(logprobs, dict) else logprobs
    return (
        type(choice.get("index", 0)) is int
        and isinstance(choice.get("finish_reason"), _TEXT)
        and isinstance(delta.get("content"), _TEXT)
        and (calls is None or _all(_is_call, calls))
        and (thoughts is None or _all(_is_thought, thoughts))
        and (entries is None or _all(_is_entry, entries))
    )


def _all(fits: Callable[[Any], bool], listed: Any) -> bool:
    return isinstance(listed, list) and all(map(fits, listed))


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict)


def _is_call(call: Any) -> bool:
    return (
        isinstance(call, dict)
        and type(call.get("index", 0)) is int
        and isinstance(call.get("function"), _OBJECT)
    )


def _is_thought(block: Any) -> bool:
    return isinstance(block, dict) and all(
        isinstance(block.get(name), _TEXT) for name in ("thinking", "signature", "data")
    )


async def _read_to_the_end(response: aiohttp.ClientResponse) -> None:
    """Take what follows [DONE], so that the connection can be used again."""
    if response.content.at_eof():
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_AFTER_DONE_SECONDS):
            while await response.content.readany():
                pass
