"""A tier: a model that can be asked, what it costs, and what it can do."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from decimal import Decimal

from cascade.pricing import PriceCard
from cascade.protocols import Backend
from cascade.tiers.bound import stripped
from cascade.tiers.requirements import Needs, answer_limit, texts
from cascade.types import ChatRequest, Chunk, Cost, Quote, Usage

CHARACTERS_PER_TOKEN = 4
EXPECTED_OUTPUT_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTier:
    """One rung: a backend, its price card and what it can be asked for.

    What a tier does not state it makes no claim about, and nothing is held against it.

    Attributes:
        capabilities: what it serves beyond plain text ("logprobs", "json_schema", "tools",
            "vision", "reasoning"). A stated list is complete, an empty one means plain text only.
        context_tokens: its window, which the prompt must leave room in.
        output_tokens: how long an answer may be.
        accepts: content of providers that it knows (see `bound`); the rest is taken out.
    """

    name: str
    backend: Backend
    prices: PriceCard | None = None
    capabilities: frozenset[str] | None = None
    context_tokens: int | None = None
    output_tokens: int | None = None
    accepts: frozenset[str] = frozenset()

    def unfit(self, needs: Needs) -> str | None:
        """Why it cannot serve such a request, as the rest of a sentence; None when it may."""
        if self.capabilities is not None:
            missing = [name for name in needs.capabilities if name not in self.capabilities]
            if missing:
                return f"does not offer {', '.join(missing)}"
        answer = needs.answer_tokens
        if self.output_tokens is not None and answer is not None and answer > self.output_tokens:
            return f"answers with at most {self.output_tokens} tokens, not {answer}"
        # The answer's limit does not count here: many clients state a large one by habit, and some
        # servers then simply answer until the window is full.
        if self.context_tokens is not None and needs.prompt_exceeds(self.context_tokens - 1):
            return f"has a window of {self.context_tokens} tokens, too short for the prompt"
        return None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask the backend; the completion carries the tier's name, also for a model without one."""
        request = stripped(request, self.accepts)
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
        prompt = sum(map(len, texts(request.messages))) // CHARACTERS_PER_TOKEN + 1
        output = min(answer_limit(request) or EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS)
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
