"""Has a prompt counted and cut into tokens by the server that would answer it.

Nobody else has its chat template.

What is asked is close enough to a window to matter, so a server that does not tell in a second, or
cannot, is taken to know no answer rather than waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import aiohttp
import orjson

from cascade.backends.payload import payload
from cascade.backends.pieces import Pieces, special_of
from cascade.protocols import Tokenizer
from cascade.tiers.requirements import text_only
from cascade.types import ChatRequest, Json

Kind = Literal["llama_cpp", "vllm"]
_T = TypeVar("_T")

_SECONDS: Final = 1.0
_LOOKS: Final = 3
"""How often a server is asked for its template's special tokens, as it may just have no time."""

_SAMPLE: Final = [
    {"role": role, "content": "Yes?"} for role in ("user", "assistant", "user", "assistant", "user")
]
_TEMPLATE_FIELDS: Final = frozenset(
    {
        "add_generation_prompt",
        "add_special_tokens",
        "chat_template",
        "chat_template_kwargs",
        "continue_final_message",
    }
)
"""Parameters of vLLM's that change what the template makes of a conversation."""


class ServerTokenizer(Tokenizer):
    """The tokenizer of a llama.cpp or vLLM server, over HTTP.

    A llama.cpp server counts at /chat/completions/input_tokens below the base address; beside that
    lie /apply-template, which writes the prompt down as it would for an answer, and /tokenize. What
    it has cut is remembered, as that is most of the work. vLLM does all at /tokenize, beside the
    base address.

    Args:
        kind: whose endpoints they are.
        url: base address that ends before /chat/completions.
        model: the model's name on that server.
        session: gives the connections to use.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        url: str,
        model: str,
        session: Callable[[], aiohttp.ClientSession],
    ) -> None:
        self._kind = kind
        self._model = model
        self._session = session
        self._base = url.rstrip("/")
        self._beside = self._base.removesuffix("/v1")
        self._pieces: Pieces | None = None
        self._looks = _LOOKS

    async def count(self, request: ChatRequest) -> int | None:
        """Tokens of the prompt as the server counts them; None when it does not say in time."""
        messages = text_only(request.messages)
        return await _in_time(self._counted(self._body(request, messages)))

    async def ids(self, request: ChatRequest) -> Sequence[int] | None:
        """The prompt's tokens, as many as its usage will say; None as for `count`, or with media.

        What an image becomes is not among the tokens that servers tell.
        """
        messages = text_only(request.messages)
        if any(map(_lost_parts, request.messages, messages)):
            return None
        return await _in_time(self._prompt_ids(self._body(request, messages), request.tenant))

    async def text_ids(self, text: str) -> Sequence[int] | None:
        """The text's tokens, with none added; None when the server does not say in time."""
        return await _in_time(self._plain(text))

    async def _counted(self, body: Json) -> int | None:
        if self._kind == "vllm":
            count = await self._ask(f"{self._beside}/tokenize", body, "count")
        else:
            count = await self._ask(
                f"{self._base}/chat/completions/input_tokens", body, "input_tokens"
            )
        return count if type(count) is int and count > 0 else None

    async def _prompt_ids(self, body: Json, tenant: str) -> Sequence[int] | None:
        if self._kind == "vllm":
            return await self._tokens(body) or None
        prompt = await self._written(body)
        if prompt is None:
            return None
        pieces = await self._known_pieces()
        if pieces is None:
            return await self._whole(prompt) or None
        return await pieces.ids(prompt, tenant, whole=self._whole, inner=self._inner) or None

    async def _known_pieces(self) -> Pieces | None:
        """The pieces of earlier prompts; None where the template's special tokens are not known."""
        if self._pieces is None and self._looks > 0:
            self._looks -= 1
            prompt = await self._written({"model": self._model, "messages": _SAMPLE}) or ""
            special = await special_of(prompt, special=self._inner, plain=self._plain)
            self._pieces = None if special is None else Pieces(special)
        return self._pieces

    async def _written(self, body: Json) -> str | None:
        """The prompt as llama.cpp's chat template writes it."""
        prompt = await self._ask(f"{self._beside}/apply-template", body, "prompt")
        return prompt if isinstance(prompt, str) else None

    async def _whole(self, prompt: str) -> Sequence[int] | None:
        return await self._tokens({"content": prompt, "add_special": True, "parse_special": True})

    async def _inner(self, text: str) -> Sequence[int] | None:
        return await self._tokens({"content": text, "add_special": False, "parse_special": True})

    async def _plain(self, text: str) -> Sequence[int] | None:
        if self._kind == "vllm":
            return await self._tokens({"prompt": text, "add_special_tokens": False})
        return await self._tokens({"content": text, "add_special": False, "parse_special": False})

    async def _tokens(self, body: Json) -> Sequence[int] | None:
        told = await self._ask(f"{self._beside}/tokenize", {"model": self._model, **body}, "tokens")
        return told if isinstance(told, list) and all(type(each) is int for each in told) else None

    async def _ask(self, endpoint: str, body: Json, name: str) -> Any:
        """One field of the answer; None where there is none."""
        # A server may close a kept connection just when it is used again, and asking is free.
        try:
            told = await self._told(endpoint, body)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            told = await self._told(endpoint, body)
        return told.get(name) if isinstance(told, dict) else None

    async def _told(self, endpoint: str, body: Json) -> Any:
        async with self._session().post(endpoint, data=payload(body)) as response:
            return orjson.loads(await response.read()) if response.ok else None

    def _body(self, request: ChatRequest, messages: Sequence[Json]) -> Json:
        params = request.params
        if self._kind == "vllm":
            params = {name: params[name] for name in _TEMPLATE_FIELDS.intersection(params)}
        body: dict[str, Any] = {**params, "model": self._model, "messages": messages}
        if request.tools is not None:
            body["tools"] = request.tools
        return body


def _lost_parts(message: Json, text: Json) -> bool:
    content = message.get("content")
    return isinstance(content, list | tuple) and len(text["content"]) < len(content)


async def _in_time(answer: Awaitable[_T | None]) -> _T | None:
    """The answer; None when it does not come in time, or not as it should."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await answer
    except (TimeoutError, aiohttp.ClientError, orjson.JSONDecodeError):
        return None
