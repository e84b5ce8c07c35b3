"""Sends a request ahead of those that will read what it leaves in a cache.

What is sent is the real request, since a prefix is only found again where tools, messages, thinking
and effort are the same; it is only kept from answering at length.
"""

import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from cascade.audit import HASHED, Prompts, record
from cascade.backends.usage import from_openai
from cascade.engine import CascadeEngine
from cascade.errors import CascadeError, ConfigError
from cascade.forecast import Forecast
from cascade.protocols import Backend
from cascade.result import CascadeResult
from cascade.snapshot import Snapshot
from cascade.types import ChatRequest, Chunk, Usage
from serving.control import HEADERS, PREFIX
from serving.prewarm.recorded import as_prewarm
from serving.store import revision
from serving.store.database import WRITES, engine_for, faults_of
from serving.store.rows import decode, encode, insert

THROUGH_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of the request that went ahead.

    Attributes:
        model: who answered.
        usage: tokens as reported.
        cost: dollars; None when they are not known.
        request_id: of its row in the audit log.
    """

    model: str
    usage: Usage
    cost: Decimal | None
    seconds: float
    request_id: str

    @property
    def kept(self) -> int:
        """Prompt tokens that a cache is known to have now: read from it or written to it."""
        return (self.usage.cache_read or 0) + sum((self.usage.cache_write or {}).values())


def prewarming(request: ChatRequest, max_tokens: int | None = None) -> ChatRequest:
    """The request that goes ahead of a real one.

    Args:
        request: the real one; it is not changed.
        max_tokens: how much may be answered. By default the least that the API takes: 1, and with a
            thinking budget, which is part of what the cache goes by, one more than that.
    """
    params = dict(request.params)
    limit = max_tokens or _least(params)
    name = "max_completion_tokens" if "max_completion_tokens" in params else "max_tokens"
    for only_of_answers in ("max_tokens", "max_completion_tokens", "n"):
        params.pop(only_of_answers, None)
    params[name] = limit
    return replace(request, params=params, budget=None, idempotency_key="")


def _least(params: Mapping[str, Any]) -> int:
    budget = thinking_budget(params)
    return 1 if budget is None else budget + 1


def thinking_budget(params: Mapping[str, Any]) -> int | None:
    """Tokens that a request lets the model think; None when it states no budget."""
    thinking = params.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return budget if isinstance(budget, int) else None


async def directly(
    url: str, snapshot: Snapshot, name: str, request: ChatRequest, *, prompts: Prompts = HASHED
) -> Sent:
    """Ask the tier in this process, by the engine, which prices and records it.

    Args:
        url: of the audit database.
        snapshot: the configuration.
        name: of the tier.
        request: from `prewarming`.
        prompts: what the log keeps of it.

    Raises:
        CascadeError: there was no answer, or it cannot be recorded.
    """
    revision.require_head(url)
    tier = snapshot.tiers[name]
    unheard = replace(tier, backend=_Unheard(tier.backend))
    only = replace(snapshot, tiers={name: unheard})
    forecast = Forecast(only.tiers, key=prompts.hash_key)
    engine = CascadeEngine(only, _Row(url, prompts), forecast=forecast)
    try:
        result = await engine.run(request, snapshot.arm(name, ""))
    finally:
        await tier.backend.aclose()
    if result.completion is None:
        message = result.error.message if result.error else "there was no answer"
        raise CascadeError(
            f"{message} (a model that must think, or answer at some length, wants --max-tokens)"
        )
    return Sent(
        model=result.completion.model,
        usage=result.completion.usage,
        cost=result.cost.total if result.cost else None,
        seconds=result.attempts[0].seconds,
        request_id=request.id,
    )


class _Unheard(Backend):
    """A backend whose answer does not matter: a tool call that is cut after a token is no fault."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask, and leave tool calls out of the answer."""
        async with aclosing(self._inner.stream(request)) as chunks:
            async for chunk in chunks:
                pieces = [{**each, "delta": _plain(each.get("delta"))} for each in chunk.choices]
                answer = chunk.completion
                if answer is not None:
                    choices = [replace(each, tool_calls=()) for each in answer.choices]
                    answer = replace(answer, choices=choices)
                yield replace(chunk, choices=pieces, completion=answer)

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()


def _plain(delta: Any) -> dict[str, Any]:
    return {name: value for name, value in (delta or {}).items() if name != "tool_calls"}


class _Row:
    """Puts a result into the audit log at once, as what it is; an AuditSink."""

    def __init__(self, url: str, prompts: Prompts) -> None:
        self._url = url
        self._prompts = prompts

    def write(self, result: CascadeResult) -> None:
        """Store its rows.

        Raises:
            AuditError: the database does not take them.
        """
        entry = decode(encode(record(as_prewarm(result), prompts=self._prompts)))
        engine = engine_for(self._url)
        try:
            with faults_of(self._url), engine.execution_options(**WRITES).begin() as connection:
                insert(connection, [entry])
        finally:
            engine.dispose()


def through(address: str, tier: str, request: ChatRequest) -> Sent:
    """Ask a running service, pinned to the tier; its log has it as what it is.

    Raises:
        CascadeError: it cannot be reached, or refuses.
    """
    if not address.startswith(("http://", "https://")):
        raise ConfigError("--through: an address begins with http:// or https://")
    body = {**request.params, "model": request.model, "messages": request.messages}
    if request.tools is not None:
        body["tools"] = request.tools
    headers = {
        "content-type": "application/json",
        HEADERS["pin"]: tier,
        HEADERS["prewarm"]: "true",
        f"{PREFIX}tenant": request.tenant,
    }
    call = urllib.request.Request(  # noqa: S310 - its scheme was looked at
        f"{address.rstrip('/')}/v1/chat/completions", orjson.dumps(body), headers
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    began = time.perf_counter()
    try:
        with direct.open(call, timeout=THROUGH_SECONDS) as response:
            said, answer = response.headers, orjson.loads(response.read())
    except urllib.error.HTTPError as error:
        raise CascadeError(f"{address} refused: {_message(error.read())}") from None
    except (OSError, ValueError) as error:
        raise CascadeError(f"{address} does not answer: {error}") from None
    return Sent(
        model=answer.get("model", ""),
        usage=from_openai(answer.get("usage")),
        cost=_dollars(said.get(f"{PREFIX}cost-usd")),
        seconds=time.perf_counter() - began,
        request_id=said.get(f"{PREFIX}request-id", ""),
    )


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:200]


def _dollars(text: str | None) -> Decimal | None:
    try:
        return Decimal(text or "")
    except InvalidOperation:
        return None
