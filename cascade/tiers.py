"""A tier: a model that can be asked, what it costs, and what it can do."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from cascade.pricing import PriceCard
from cascade.protocols import Backend
from cascade.types import ChatRequest, Chunk, Cost, Quote, Usage

CHARACTERS_PER_TOKEN = 4
EXPECTED_OUTPUT_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTier:
    """One rung: a backend, its price card and its capabilities.

    Attributes:
        capabilities: what it offers beyond plain text ("logprobs", "json_schema", "tools", ...).
    """

    name: str
    backend: Backend
    prices: PriceCard | None = None
    capabilities: frozenset[str] = frozenset()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the backend; the completion carries the tier's name, also for a model without one."""
        async with aclosing(self.backend.stream(request)) as chunks:
            async for chunk in chunks:
                if (answer := chunk.completion) is None:
                    yield chunk
                    continue
                named = replace(answer, tier=self.name, model=answer.model or self.name)
                yield replace(chunk, completion=named)

    def quote(self, request: ChatRequest) -> Quote:
        """What a call is expected to cost at list price, no cache assumed.

        The prompt is counted as characters / 4 and the answer as the client's limit or 256 tokens,
        whichever is smaller.
        """
        prompt = sum(len(text) for text in _texts(request.messages)) // CHARACTERS_PER_TOKEN + 1
        limit = request.params.get("max_completion_tokens") or request.params.get("max_tokens")
        output = min(limit or EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS)
        usage = Usage(input=prompt, cache_read=0, output=output)
        cost = self.price(usage)
        return Quote(
            tier=self.name,
            cold_tokens=prompt,
            expected_output_tokens=output,
            dollars=cost.total if cost else None,
            cold_premium=self.cold_premium(usage, cost),
        )

    def price(self, usage: Usage) -> Cost | None:
        """What a call cost; None when the card or the report does not say."""
        return self.prices.price(usage) if self.prices else None

    def cold_premium(self, usage: Usage, paid: Cost | None) -> Decimal | None:
        """Dollars that a call cost more than it would have with its whole prompt warm.

        None when the price or what was cached is not known.
        """
        if paid is None or usage.prompt is None or usage.cache_read is None:
            return None
        warm = self.price(Usage(input=0, cache_read=usage.prompt, output=0))
        return None if warm is None else paid.total - paid.output - warm.total


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(value.get("content"))
        yield from _texts(value.get("text"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
