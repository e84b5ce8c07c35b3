"""Turns uses into dollars: what each time to live costs, whether pings pay, how long to hold.

Formulas, with r the price of reading a token, w of writing it for the time T, p of computing it:

- a time to live: (read * r + written * w) / calls.
- up to k pings, each just before the entry expires: of what comes back after n <= k of them,
  saved * (w - r) - n * read * r; of the rest, -k * read * r for nothing.
- holding a conversation on one's own servers for T seconds takes tokens / capacity of the memory
  for that long; giving it up takes tokens * (1 / prefill - 1 / cached speed) of the whole. They are
  equal at T = capacity * (1 / prefill - 1 / cached), whatever the conversation's length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cascade.caches import CacheCard
from cascade.pricing import MILLION, PriceCard
from serving.retention.uses import MAX_PINGS, PIECES, Piece, TierUses, Waits

TTLS: Mapping[float, str] = {300.0: "5m", 3600.0: "1h"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """Prompt tokens a second of a model's server, computed and read from its cache."""

    prefill: Decimal
    cached: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class TierTerms:
    """What the configuration says of a tier; None where it does not."""

    prices: PriceCard | None = None
    cache: CacheCard | None = None
    speeds: Speeds | None = None

    @property
    def horizons(self) -> Sequence[float]:
        """The times to live to compare, in seconds: 5 min, 1 h and the tier's own."""
        own = self.cache.ttl_seconds if self.cache else None
        return sorted({*TTLS, *([own] if own else [])})


@dataclass(frozen=True, slots=True, kw_only=True)
class TtlCost:
    """What a time to live would have cost; prices in dollars per million tokens.

    Attributes:
        offered: the tier has it, as far as is known.
        dollars_per_million: of requests; None when a price is not known.
    """

    seconds: float
    offered: bool
    read_tokens: int
    written_tokens: int
    read_price: Decimal | None
    write_price: Decimal | None
    dollars_per_million: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pings:
    """Whether keeping a piece of the prompts alive pays.

    Attributes:
        times: how many pings in a row are best; 0 when none pays.
        saves_per_million: dollars that these save, their own cost taken off.
        first_costs: dollars per million requests of one ping for each that expires.
        first_saves: dollars per million requests that this would save.
    """

    piece: Piece
    seconds: float
    times: int
    saves_per_million: Decimal
    first_costs: Decimal
    first_saves: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """How long to hold a run while its tools work.

    Attributes:
        number: results of tools that came.
        p50: half of them came within so many seconds.
        break_even: hold up to so many seconds; None when capacity or speeds are not known.
        share: of the results that come within it, or within the cache's time to live.
    """

    number: int
    p50: float | None
    p90: float | None
    p99: float | None
    break_even: float | None
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What the log says of how long to keep a tier's prompts."""

    tier: str
    calls: int
    unreported: int
    prompt_tokens: int
    terms: TierTerms
    ttls: Sequence[TtlCost]
    pings: Sequence[Pings]
    holding: Holding

    @property
    def cheapest(self) -> TtlCost | None:
        """Of the times to live that the tier has; None when their prices are not known."""
        priced = [ttl for ttl in self.ttls if ttl.offered and ttl.dollars_per_million is not None]
        return min(priced, key=lambda ttl: ttl.dollars_per_million or 0, default=None)

    @property
    def pinged(self) -> tuple[Pings, Decimal] | None:
        """The pings with which a time to live is cheaper than the cheapest without any.

        And what it comes to, in dollars per million requests. Pings of conversations renew what
        they share as well, so the two are not added up.
        """
        best = self.cheapest
        if best is None or best.dollars_per_million is None:
            return None
        costs = {ttl.seconds: ttl.dollars_per_million or Decimal(0) for ttl in self.ttls}
        ways = [(each, costs[each.seconds] - each.saves_per_million) for each in self.pings]
        way = min(ways, key=lambda each: each[1], default=None)
        return way if way and way[1] < best.dollars_per_million else None


def retention(tier: str, uses: TierUses, terms: TierTerms) -> Retention:
    """What one tier's uses are worth."""
    ttls = [_ttl(uses, terms, seconds) for seconds in uses.kept]
    pings = [
        ping
        for ttl in ttls
        if ttl.offered and uses.calls
        for piece in PIECES
        if (ping := _pings(piece, uses.kept[ttl.seconds].waits[piece], ttl, uses.calls))
    ]
    return Retention(
        tier=tier,
        calls=uses.calls,
        unreported=uses.unreported,
        prompt_tokens=uses.prompt_tokens,
        terms=terms,
        ttls=ttls,
        pings=pings,
        holding=_holding(uses, terms),
    )


def break_even_seconds(capacity_tokens: int, speeds: Speeds) -> float:
    """How long holding a prefix costs less than computing it again."""
    return float(capacity_tokens * (1 / speeds.prefill - 1 / speeds.cached))


def _ttl(uses: TierUses, terms: TierTerms, seconds: float) -> TtlCost:
    kept, prices = uses.kept[seconds], terms.prices
    read = _per_million(prices.read_rate()) if prices else None
    write = _write_price(prices, seconds) if prices else None
    dollars = None
    if read is not None and write is not None and uses.calls:
        # Of tokens times dollars per million tokens: dollars per million requests.
        dollars = (kept.read * read + kept.written * write) / uses.calls
    return TtlCost(
        seconds=seconds,
        offered=_offered(terms, seconds),
        read_tokens=kept.read,
        written_tokens=kept.written,
        read_price=read,
        write_price=write,
        dollars_per_million=dollars,
    )


def _write_price(prices: PriceCard, seconds: float) -> Decimal | None:
    """Dollars per million tokens that are written for so long; None when the card has no such."""
    if prices.rates.cache_write and seconds in TTLS:
        return _per_million(prices.write_rate(TTLS[seconds]))
    return _per_million(prices.write_rate())


def _per_million(rate: Decimal | None) -> Decimal | None:
    return None if rate is None else rate * MILLION


def _offered(terms: TierTerms, seconds: float) -> bool:
    written = terms.prices.rates.cache_write if terms.prices else {}
    if terms.cache is None:
        return TTLS.get(seconds) in written or (not written and seconds == min(TTLS))
    if terms.cache.kind != "ttl":
        return False
    return TTLS.get(seconds) in written or seconds == terms.cache.ttl_seconds


def _pings(piece: Piece, waits: Waits, ttl: TtlCost, calls: int) -> Pings | None:
    read, write = ttl.read_price, ttl.write_price
    if read is None or write is None or not (waits.read or waits.never):
        return None
    whole = sum(waits.read.values()) + waits.never
    best, most, cost, saved = 0, Decimal(0), Decimal(0), Decimal(0)
    waiting = whole
    for number in range(1, MAX_PINGS + 1):
        cost += waiting * read  # the next ping is for all that have not come back by then
        saved += waits.saved.get(number, 0) * (write - read)
        waiting -= waits.read.get(number, 0)
        if saved - cost > most:
            best, most = number, saved - cost
    return Pings(
        piece=piece,
        seconds=ttl.seconds,
        times=best,
        saves_per_million=most / calls,
        first_costs=whole * read / calls,
        first_saves=waits.saved.get(1, 0) * (write - read) / calls,
    )


def _holding(uses: TierUses, terms: TierTerms) -> Holding:
    cache, limit = terms.cache, None
    if terms.speeds and cache and cache.capacity_tokens and cache.kind != "ttl":
        limit = break_even_seconds(cache.capacity_tokens, terms.speeds)
    within = limit if limit is not None else cache.ttl_seconds if cache else None
    return Holding(
        number=uses.tools.number,
        p50=uses.tools.quantile(0.5),
        p90=uses.tools.quantile(0.9),
        p99=uses.tools.quantile(0.99),
        break_even=limit,
        share=None if within is None else uses.tools.share_within(within),
    )
