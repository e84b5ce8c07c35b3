"""Counts a prompt by asking the server that would answer it: nobody else has its chat template.

What is asked is close enough to a window to matter, so a server that does not tell in a second, or
cannot, is taken to know no answer rather than waited for.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal

import aiohttp
import orjson

from cascade.backends.payload import payload
from cascade.protocols import Tokenizer
from cascade.tiers.requirements import text_only
from cascade.types import ChatRequest, Json

Kind = Literal["llama_cpp", "vllm"]

_SECONDS: Final = 1.0
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

    Args:
        kind: whose endpoint it is: llama.cpp's /chat/completions/input_tokens below the base
            address, or vLLM's /tokenize beside it.
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
        base = url.rstrip("/")
        self._kind = kind
        self._model = model
        self._session = session
        self._endpoint = {
            "llama_cpp": f"{base}/chat/completions/input_tokens",
            "vllm": f"{base.removesuffix('/v1')}/tokenize",
        }[kind]
        self._answer = {"llama_cpp": "input_tokens", "vllm": "count"}[kind]

    async def count(self, request: ChatRequest) -> int | None:
        """Tokens of the prompt as the server counts them; None when it does not say in time."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._ask_again_if_closed(self._body(request))
        except (TimeoutError, aiohttp.ClientError, orjson.JSONDecodeError):
            return None

    async def _ask_again_if_closed(self, body: Json) -> int | None:
        # A server may close a kept connection just when it is used again, and counting is free.
        try:
            return await self._ask(body)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._ask(body)

    async def _ask(self, body: Json) -> int | None:
        async with self._session().post(self._endpoint, data=payload(body)) as response:
            told = orjson.loads(await response.read()) if response.ok else None
        count = told.get(self._answer) if isinstance(told, dict) else None
        return count if type(count) is int and count > 0 else None

    def _body(self, request: ChatRequest) -> Json:
        params = request.params
        if self._kind == "vllm":
            params = {name: params[name] for name in _TEMPLATE_FIELDS.intersection(params)}
        body: dict[str, Any] = {
            **params,
            "model": self._model,
            "messages": text_only(request.messages),
        }
        if request.tools is not None:
            body["tools"] = request.tools
        return body
