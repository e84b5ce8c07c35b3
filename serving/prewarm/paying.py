"""Whether it pays to fill a cache ahead, and what speaks against it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from cascade.cache_economics import (
    Batch,
    PrefixRates,
    break_even,
    in_parallel,
    in_sequence,
    prewarmed,
    requests_that_pay,
    uncached,
)
from cascade.pricing import MILLION, PriceCard
from cascade.tiers import ModelTier
from cascade.types import ChatRequest
from serving.prewarm.sending import Sent, thinking_budget

_ALL_BUT: Final = 0.9
"""Share of the prompt above which it was warm before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Economics:
    """What so many uses of a prefix cost in dollars, by how they are sent.

    Attributes:
        tokens: of the prefix.
        uses: requests that will read it, the one that goes ahead not among them.
        above: a write pays from more requests than that on one prefix, the first included; None
            when it never does.
        dollars: uncached, in sequence (the first writes, the others wait for it), all at once (each
            writes) and prewarmed.
    """

    tokens: int
    uses: int
    write: Decimal
    read: Decimal
    above: Decimal | None
    pays_from: int | None
    dollars: Mapping[str, Decimal]

    @property
    def pays(self) -> bool:
        """Whether going ahead costs less than no cache at all."""
        return self.dollars["prewarmed"] < self.dollars["uncached"]


def economics(sent: Sent, prices: PriceCard | None, uses: int) -> Economics | None:
    """What the uses cost; None without the prices that this needs, or when the prompt is unknown.

    Where nothing was reported as kept, the whole prompt counts as what will be shared.
    """
    prompt = sent.usage.prompt
    if prices is None or not prompt:
        return None
    rates = prices.rates_for(prompt)
    ttls = [ttl for ttl, tokens in (sent.usage.cache_write or {}).items() if tokens]
    write = rates.cache_write.get(ttls[0]) if ttls else prices.write_rate(prompt=prompt)
    if write is not None and not ttls:
        write *= MILLION
    if not rates.input or rates.cache_read is None or write is None:
        return None
    of = PrefixRates(fresh=rates.input, read=rates.cache_read, write=write)
    batch = Batch(prefix=sent.kept or prompt, suffix=0, requests=uses)
    w, r = of.write / of.fresh, of.read / of.fresh
    ways = {
        "uncached": uncached(batch, of),
        "in sequence": in_sequence(batch, of),
        "all at once": in_parallel(batch, of),
        "prewarmed": prewarmed(batch, of),
    }
    return Economics(
        tokens=batch.prefix,
        uses=uses,
        write=w,
        read=r,
        above=break_even(write=w, read=r),
        pays_from=requests_that_pay(write=w, read=r),
        dollars={way: cost / MILLION for way, cost in ways.items()},
    )


def thinking(request: ChatRequest, prices: PriceCard | None) -> Sequence[str]:
    """The most that a thinking model's output may cost; nothing where it has no budget to think.

    Args:
        request: as it will be sent, from `prewarming`.
        prices: of the tier; the highest rate of output counts.
    """
    if thinking_budget(request.params) is None:
        return []
    tokens = request.params.get("max_completion_tokens") or request.params["max_tokens"]
    cards = [prices.rates, *(rates for _, rates in prices.long_prompt_rates)] if prices else []
    rates = [rates.output for rates in cards if rates.output is not None]
    most = f"${tokens * max(rates) / MILLION:.6g}" if rates else "an unknown amount"
    return [f"it may think: up to {tokens:,} tokens of output, which cost {most} at most"]


def advice(sent: Sent, tier: ModelTier, found: Economics | None) -> list[str]:
    """What speaks against it, and what to do about that; nothing when all is well."""
    return [*_on_what_was_kept(sent, tier), *_on_the_price(tier, found)]


def _on_what_was_kept(sent: Sent, tier: ModelTier) -> Iterator[str]:
    usage, cache = sent.usage, tier.cache
    prompt = usage.prompt
    if prompt is None:
        yield "the server does not report its tokens, so nobody knows what was kept"
        return
    least = cache.minimum_tokens if cache else 0
    if prompt < least:
        yield f"the prompt has {prompt:,} tokens and this model keeps none below {least:,}"
    elif not sent.kept and usage.cache_write is not None:
        yield (
            "nothing was written: this model keeps only what is marked up to a place above its "
            "minimum (breakpoints: true marks it)"
        )
    elif (usage.cache_read or 0) >= _ALL_BUT * prompt:
        yield "it was warm already: only its time was renewed"
    if usage.cache_read is None:
        yield "the server does not report what it reads from its cache"
    if cache is None:
        yield "it is not known how this tier's cache works: say so with its key `cache`"
    elif cache.kind == "slots":
        yield (
            f"the server keeps the last prompt of each of its {cache.slots} slots: "
            f"{cache.slots} other conversations later it is gone, unless there is memory beside "
            "the slots"
        )


def _on_the_price(tier: ModelTier, found: Economics | None) -> Iterator[str]:
    if found is None:
        yield f"whether it pays cannot be told without input and cache_read prices of {tier.name}"
        return
    if found.write <= 1:
        yield (
            "a write costs no more here than the prompt alone: the first request does the same for "
            "nothing, and going ahead of it only saves it its wait"
        )
    if not found.pays:
        uses = "1 use is" if found.uses == 1 else f"{found.uses} uses are"
        yield f"{uses} too few: without a cache they would cost less"
