"""Keeps a collection within its budget: a call that could exceed it is not made.

What a call will cost is known afterwards, so the most that it can cost is set aside before, and
what it did not take is given back.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from decimal import Decimal
from typing import Final

import orjson

from cascade.errors import BackendError, ConfigError
from cascade.pricing import PriceCard
from cascade.protocols import Backend
from cascade.tiers import ModelTier
from cascade.types import ChatRequest, Chunk, Completion, Usage

MESSAGE_TOKENS: Final = 16
"""More than a chat template puts around a message."""

ANSWER_TOKENS: Final = 4096
"""How long an answer may be where neither the request nor the tier says."""


PLAIN: Final = Usage(input=1, cache_read=0, output=1)
"""What any call takes at least."""


class BudgetSpentError(BackendError):
    """The call was not made, since it could have exceeded the budget."""

    status = 402
    code = "budget_spent"


class UnpricedCallError(BackendError):
    """The call was not made, since nobody says what it could cost and the budget is in dollars."""

    status = 402
    code = "unpriced"


class Meter:
    """Counts calls and dollars.

    Args:
        most_dollars: all calls together may cost so much; None: whatever they cost.
        most_requests: there may be so many.
    """

    def __init__(
        self, *, most_dollars: Decimal | None = None, most_requests: int | None = None
    ) -> None:
        self._most_dollars = most_dollars
        self._most_requests = most_requests
        self._set_aside = Decimal(0)
        self._ended = asyncio.Event()
        self.requests = 0
        self.dollars = Decimal(0)
        self.unknown = 0
        self.spent = False

    def require_price(self, tier: ModelTier) -> None:
        """Say before anything is asked that a limit in dollars cannot be kept.

        Raises:
            ConfigError: dollars are limited, and the tier's card does not price a plain call.
        """
        if self._most_dollars is not None and tier.price(PLAIN) is None:
            raise ConfigError(
                f"tier {tier.name} has no price, so that --max-usd cannot be kept; give it one"
            )

    def metered(self, tier: ModelTier) -> ModelTier:
        """The tier, whose calls count."""
        limit = tier.output_tokens or ANSWER_TOKENS
        return replace(tier, backend=_Metered(tier.backend, tier.prices, limit, self))

    async def turn(self, most: Decimal | None) -> Decimal:
        """As `begin`, but waits for calls in flight while what is set aside for them is wanting.

        Raises:
            BudgetSpentError: it could exceed the budget whatever those cost.
            UnpricedCallError: dollars are limited and nobody says what it could cost.
        """
        while self._has_to_wait(most or Decimal(0)):
            self._ended.clear()
            await self._ended.wait()
        return self.begin(most)

    def _has_to_wait(self, aside: Decimal) -> bool:
        if self._most_dollars is None:
            return False
        left = self._most_dollars - self.dollars - aside
        return 0 <= left < self._set_aside

    def begin(self, most: Decimal | None) -> Decimal:
        """Count a call and set aside the most that it can cost.

        Raises:
            BudgetSpentError: it could exceed the budget.
            UnpricedCallError: dollars are limited and nobody says what it could cost.
        """
        if self._most_dollars is not None and most is None:
            raise UnpricedCallError("its price is not known, so that --max-usd cannot be kept")
        aside = most or Decimal(0)
        over = self._most_requests is not None and self.requests >= self._most_requests
        if self._most_dollars is not None:
            over = over or self.dollars + self._set_aside + aside > self._most_dollars
        if over:
            self.spent = True
            raise BudgetSpentError("the budget is spent")
        self.requests += 1
        self._set_aside += aside
        return aside

    def end(self, aside: Decimal, cost: Decimal | None) -> None:
        """Count what a call cost; what is unknown counts as the most that it could."""
        self._ended.set()
        self._set_aside -= aside
        self.dollars += aside if cost is None else cost
        self.unknown += cost is None


def most_dollars(card: PriceCard, request: ChatRequest, limit: int) -> Decimal | None:
    """The most that a call can cost: a token is at least a byte of the prompt.

    Args:
        card: the tier's.
        request: what would be sent.
        limit: tokens of an answer where the request says nothing.
    """
    said = orjson.dumps([list(request.messages), request.tools, request.params], default=str)
    prompt = len(said) + MESSAGE_TOKENS * len(request.messages)
    params = request.params
    answer = int(params.get("max_completion_tokens") or params.get("max_tokens") or limit)
    whole = card.price(Usage(input=prompt, cache_read=0, output=answer * (params.get("n") or 1)))
    if whole is None:
        return None
    written = card.prompt_cost(warm=0, cold=prompt) or Decimal(0)
    return whole.total + max(written - whole.input, Decimal(0))


class _Metered(Backend):
    """A backend whose calls are counted."""

    def __init__(self, inner: Backend, card: PriceCard | None, limit: int, meter: Meter) -> None:
        self.tokenizer = inner.tokenizer
        self._inner = inner
        self._card = card
        self._limit = limit
        self._meter = meter

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask, if the budget allows it."""
        most = None if self._card is None else most_dollars(self._card, request, self._limit)
        aside = await self._meter.turn(most)
        cost: Decimal | None = None
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    cost = self._cost(chunk.completion) if chunk.completion else cost
                    yield chunk
        except BackendError as error:
            if not error.may_have_cost and not error.unreported_tries:
                cost = Decimal(0)
            raise
        finally:
            self._meter.end(aside, cost)

    def _cost(self, answer: Completion) -> Decimal | None:
        if self._card is None or answer.unreported_tries:
            return None
        found = self._card.price(answer.usage)
        return None if found is None else found.total

    async def aclose(self) -> None:
        """Release what the backend holds."""
        await self._inner.aclose()
