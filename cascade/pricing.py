"""The only place where tokens meet prices.

A price card holds dollars per million tokens for each bucket of `Usage`. Rates that a card does not
state are unknown, and a call that needs an unknown rate has an unknown cost (None), never zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cascade.types import Cost, Usage

MILLION = Decimal(1_000_000)
SECONDS_PER_HOUR = Decimal(3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Dollars per million tokens; None is unknown, 0 is free.

    Attributes:
        cache_write: by time to live ("5m", "1h").
        output: also the rate of reasoning tokens.
    """

    input: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Mapping[str, Decimal] = field(default_factory=dict)
    output: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCard:
    """What a tier's tokens cost.

    Attributes:
        rates: of ordinary prompts.
        long_prompt_rates: (prompt tokens, rates): a prompt longer than that is priced as a whole at
            those rates; ascending.
        kept_for: the time to live for which prompts are written to the cache; None: the cheapest.
        source: where the rates are from, with its version; None when they were stated by hand.
    """

    rates: Rates
    long_prompt_rates: Sequence[tuple[int, Rates]] = ()
    kept_for: str | None = None
    source: str | None = None

    @classmethod
    def from_gpu(
        cls,
        *,
        usd_per_hour: Decimal,
        prefill_tokens_per_second: Decimal,
        cached_tokens_per_second: Decimal,
        decode_tokens_per_second: Decimal,
    ) -> "PriceCard":
        """The card of a self-hosted model: a token costs the share of an hour that it takes.

        dollars per million = usd_per_hour / 3600 / (tokens per second) * 10^6, for prompt tokens
        that are computed, prompt tokens that are read from the cache, and answer tokens.
        """

        def rate(tokens_per_second: Decimal) -> Decimal:
            return usd_per_hour / SECONDS_PER_HOUR / tokens_per_second * MILLION

        return cls(
            rates=Rates(
                input=rate(prefill_tokens_per_second),
                cache_read=rate(cached_tokens_per_second),
                output=rate(decode_tokens_per_second),
            ),
        )

    def price(self, usage: Usage) -> Cost | None:
        """Dollars of one call; None when a bucket that was used has no rate or was not reported.

        Where cache_read or cache_write is None, those tokens are inside `input` and priced as if
        computed: an upper bound for a cache that is not reported.
        """
        if usage.input is None or usage.output is None:
            return None
        rates = self.rates_for(usage.prompt or 0)
        writes = [
            _dollars(tokens, rates.cache_write.get(ttl))
            for ttl, tokens in (usage.cache_write or {}).items()
        ]
        spent_input = _dollars(usage.input, rates.input)
        read = _dollars(usage.cache_read or 0, rates.cache_read)
        output = _dollars(usage.output + (usage.reasoning or 0), rates.output)
        if spent_input is None or read is None or output is None:
            return None
        written = [write for write in writes if write is not None]
        if len(written) < len(writes):
            return None
        return Cost(
            input=spent_input, cache_read=read, cache_write=sum(written, Decimal(0)), output=output
        )

    def warm_prompt(self, tokens: int) -> Decimal | None:
        """Dollars of a prompt that is read from the cache as a whole."""
        return self.prompt_cost(warm=tokens, cold=0)

    def prompt_cost(self, *, warm: int, cold: int, write_ttl: str | None = None) -> Decimal | None:
        """Dollars of a prompt, the answer left out; None when a rate that it needs is unknown.

        Args:
            warm: tokens that are read from the cache.
            cold: tokens that are written to it, or only computed where the card has no writes.
            write_ttl: how long what is written shall be kept; None takes `written_for`.
        """
        prompt = warm + cold
        read = _dollars(warm, self.rates_for(prompt).cache_read)
        computed = _dollars(cold, self._written(prompt, write_ttl))
        return None if read is None or computed is None else read + computed

    def read_rate(self, prompt: int = 0) -> Decimal | None:
        """Dollars of a token that is read from the cache, in a prompt of so many tokens."""
        return _dollars(1, self.rates_for(prompt).cache_read)

    def write_rate(self, ttl: str | None = None, *, prompt: int = 0) -> Decimal | None:
        """Dollars of a token that is not in the cache, in a prompt of so many tokens.

        The rate of writing it for that time, by default the cheapest; where the card has no writes,
        that of computing it.
        """
        return _dollars(1, self._written(prompt, ttl))

    def written_for(self, prompt: int) -> str | None:
        """The time to live that such a long prompt is written for; None: writes have no price."""
        writes = self.rates_for(prompt).cache_write
        if self.kept_for in writes:
            return self.kept_for
        return min(writes, key=lambda ttl: writes[ttl]) if writes else None

    def _written(self, prompt: int, ttl: str | None) -> Decimal | None:
        """The rate of a prompt token that was not in the cache and is afterwards."""
        rates, ttl = self.rates_for(prompt), ttl or self.written_for(prompt)
        return rates.cache_write.get(ttl) if ttl and rates.cache_write else rates.input

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates of a prompt of that length, cached tokens included."""
        chosen = self.rates
        for above, rates in self.long_prompt_rates:
            if prompt_tokens > above:
                chosen = rates
        return chosen


def _dollars(tokens: int, rate: Decimal | None) -> Decimal | None:
    if tokens == 0:
        return Decimal(0)
    return None if rate is None else tokens * rate / MILLION
