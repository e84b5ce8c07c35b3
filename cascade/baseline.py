"""What the dearest tier would have cost, had it served every turn: what savings are measured by.

A conversation that stays with one model finds its prefix warm there, so a baseline that pays the
full price for every prompt would make any router look good. Here the dearest tier has a cache of
its own that it would have kept warm: the strongest rival that is honest.

It is a ledger like that of the tiers, of which each is taken to have been asked every time. Nobody
reports what such a call would have found, so prompts are compared as text, whoever answers.
"""

import time
from collections.abc import Callable, Collection

from cascade.caches import CacheCard
from cascade.ledger import Ledger
from cascade.prefix import Chained, answer_rendering
from cascade.pricing import PriceCard
from cascade.quote import Quote
from cascade.types import Completion, Cost, Usage

TTL_SECONDS = 300.0
MAX_BLOCKS = 1_000_000


class Baseline:
    """What each tier would have in its cache if it had served every request.

    Args:
        tiers: their names.
        ttl_seconds: how long a prefix stays warm after its last use.
        max_blocks: how many blocks of text are remembered for each, the latest used.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        tiers: Collection[str],
        *,
        ttl_seconds: float = TTL_SECONDS,
        max_blocks: int = MAX_BLOCKS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        card = CacheCard(kind="ttl", ttl_seconds=ttl_seconds)
        self._ledger = Ledger(dict.fromkeys(tiers, card), max_blocks=max_blocks, clock=clock)

    def cost(
        self, quote: Quote, card: PriceCard, prompt: Chained, answer: Completion
    ) -> Cost | None:
        """What a tier would have cost for a request that was answered; it is warm from then on.

        Args:
            quote: of the dearest tier.
            card: its prices.
            prompt: the request's text, with the tenant's salt.
            answer: what the client got. Its tokens are taken for what the tier would have used, the
                quote's where it did not report them.

        Returns:
            None when the card does not say.
        """
        warm = self._ledger.warm(quote.tier, prompt.chain).tokens
        self._ledger.ended(quote.tier, prompt.with_text(answer_rendering(answer)).chain)
        # Where that tier answered, it said what was warm: what its chat template adds, for one.
        told = answer.usage.cache_read if answer.tier == quote.tier else None
        share = warm / (prompt.chain.tokens or 1)
        return card.price(_usage(quote, card, answer.usage, share, told or 0))


def _usage(
    quote: Quote, card: PriceCard, reported: Usage, warm_share: float, least_warm: int
) -> Usage:
    """The answer's tokens, with the share of the prompt that would have been warm, or more."""
    prompt, output = reported.prompt, reported.output
    if prompt is None:
        prompt = quote.cold_tokens + quote.warm_tokens
    if output is None:
        output = quote.expected_output_tokens
    warm = min(prompt, max(int(prompt * warm_share), least_warm))
    writes = card.rates.cache_write
    if not writes:
        return Usage(
            input=prompt - warm, cache_read=warm, output=output, reasoning=reported.reasoning
        )
    # Only what is written is warm the next time; the cheapest way is the strongest rival.
    ttl = min(writes, key=lambda each: writes[each])
    return Usage(
        input=0,
        cache_read=warm,
        cache_write={ttl: prompt - warm},
        output=output,
        reasoning=reported.reasoning,
    )
