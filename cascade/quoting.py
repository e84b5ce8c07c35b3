"""What a call would cost, given what is warm, and what warming it is worth to later calls.

The bill of one call is not what it should be decided by. A conversation that is the first to go to
a model pays for a prefix that its whole tenant will read; counted against that one call, nobody
would ever be the first. So the quote carries a credit: what the warming saves later calls, by how
often they come and what it is to them. Without it counting the cache can be worse than not counting
it.
"""

from dataclasses import dataclass, replace
from typing import Final

from cascade.ledger import Warm
from cascade.pricing import PriceCard
from cascade.quote import NOTHING, Quote, Shared
from cascade.tiers import ModelTier
from cascade.traffic import Traffic, Whose
from cascade.types import Usage

COLD: Final = Warm()

UNKNOWN_LIFETIME: Final = 3600.0
"""Seconds that a prefix is taken to stay in a cache which has not been seen full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is expected of one call.

    Attributes:
        prompt: tokens.
        stable: the first of them, which other conversations share.
        output: tokens of the answer.
        warm: what of the prompt is cached.
        shared_age: seconds since the part that others share was used, where it is warm; None where
            that is as long ago as all that is warm.
        lifetime: seconds for which a prefix stays cached after its last use; None: not known.
        minimum: shorter prompts are not cached.
        cached: whether there is a cache at all.
    """

    prompt: int
    stable: int = 0
    output: int
    warm: Warm = COLD
    shared_age: float | None = None
    lifetime: float | None = None
    minimum: int = 0
    cached: bool = True


def quote(tier: ModelTier, expected: Expected, traffic: Traffic, whose: Whose) -> Quote:
    """The quote of a call to a tier, without its time.

    A prompt below the cache's minimum is neither read from it nor written to it, and a part below
    it that others share is never read by them.
    """
    caches = expected.cached and expected.prompt >= expected.minimum
    warm = min(expected.warm.tokens, expected.prompt) if caches else 0
    cold = expected.prompt - warm
    said = Quote(
        tier=tier.name,
        warm_tokens=warm,
        cold_tokens=cold,
        expected_output_tokens=expected.output,
        estimated=expected.warm.estimated,
    )
    card = tier.prices
    if card is None:
        return said
    bill = card.price(_usage(card, warm, cold, expected.output, caches=caches))
    if bill is None:
        return said
    whole = card.warm_prompt(expected.prompt) if caches else None
    shares = caches and expected.stable >= expected.minimum
    return replace(
        said,
        dollars=bill.total,
        cold_premium=None if whole is None else bill.total - bill.output - whole,
        shared=_shared(card, tier.name, expected, traffic, whose) if shares else NOTHING,
    )


def _usage(card: PriceCard, warm: int, cold: int, output: int, *, caches: bool) -> Usage:
    """What the call will report: what is not read is written, where writing has a price."""
    ttl = card.written_for(warm + cold) if caches else None
    if ttl is None:
        return Usage(input=cold, cache_read=warm, output=output)
    return Usage(input=0, cache_read=warm, cache_write={ttl: cold}, output=output)


def _shared(
    card: PriceCard, tier: str, expected: Expected, traffic: Traffic, whose: Whose
) -> Shared:
    """The part of a prompt that others share, with what warming it is worth.

    Of a token that is computed and kept for w and read for r, the premium is w - r; `traffic` says
    what share of it a call leaves to later ones. Nothing where a price is not known.
    """
    write, read = card.write_rate(prompt=expected.prompt), card.read_rate(expected.prompt)
    if write is None or read is None or write <= read:
        return NOTHING
    each = float(write - read)
    lifetime = UNKNOWN_LIFETIME if expected.lifetime is None else expected.lifetime
    used = expected.warm.age_seconds if expected.shared_age is None else expected.shared_age
    age = min(used or 0.0, lifetime)
    tokens = min(expected.stable, expected.prompt)
    warm = min(expected.warm.tokens, tokens)
    worth = traffic.worth(whose, tier, lifetime, age)
    return Shared(
        premium=each * tokens,
        cold=each * (tokens - warm),
        credit=each * ((tokens - warm) * worth.warmed + warm * worth.renewed),
    )


def wanted(quote: Quote, lead: float) -> float:
    """u, how much a turn wanted a tier that led its other choices by so many dollars.

    The lead is at the price that was decided by. Warm, the tier would have led by what is cold of
    it more, and without credit by that less.
    """
    shared = quote.shared
    if not shared.premium:
        return 0.0
    return (lead + shared.cold - shared.credit) / shared.premium
