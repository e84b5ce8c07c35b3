"""When a prompt cache pays: the arithmetic, apart from whoever asks.

A prefix can be computed, read back at a discount, or fetched from slower memory. Which of them is
cheapest follows from a handful of ratios, and is guessed wrong easily: a write that is never read
costs more than no cache, and requests that are sent at once each pay for a write of their own.
GB is 10^9 bytes and GiB 2^30; everything here is in bytes, seconds and tokens.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

LONGEST_PREFIX: Final = 10**9
"""Tokens; no model reads a prompt that is nearly so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixRates:
    """What a prompt token costs, in any one unit: dollars, or shares of the input price.

    Attributes:
        fresh: computed and not kept.
        read: read from the cache.
        write: computed and kept.
    """

    fresh: Decimal
    read: Decimal
    write: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Requests that begin alike.

    Attributes:
        prefix: tokens that they share.
        suffix: tokens that each has of its own after it, which are never kept.
        requests: how many there are.
    """

    prefix: int
    suffix: int
    requests: int


def break_even(*, write: Decimal, read: Decimal) -> Decimal | None:
    """Requests on one prefix, the first included, above which a cache write pays.

    N requests cost N without a cache, and w + (N - 1) r with one, so it pays where
    N > (w - r) / (1 - r). None when reading is no cheaper than computing: it never does.

    Args:
        write: price of a written token over that of a computed one (w).
        read: the same of a token that is read (r).
    """
    return (write - read) / (1 - read) if read < 1 else None


def requests_that_pay(*, write: Decimal, read: Decimal) -> int | None:
    """The smallest whole number of requests with which a cache write pays; None for none."""
    above = break_even(write=write, read=read)
    return None if above is None else max(1, math.floor(above) + 1)


def uncached(batch: Batch, rates: PrefixRates) -> Decimal:
    """Cost of the prompts when nothing is kept: N (P + Q) f."""
    return batch.requests * (batch.prefix + batch.suffix) * rates.fresh


def in_sequence(batch: Batch, rates: PrefixRates) -> Decimal:
    """Cost when the first has begun its answer before the others are sent.

    P w + (N - 1) P r + N Q f.
    """
    read = (batch.requests - 1) * batch.prefix * rates.read
    return batch.prefix * rates.write + read + _suffixes(batch, rates)


def in_parallel(batch: Batch, rates: PrefixRates) -> Decimal:
    """Cost when all are sent at once: none finds what another writes, so N P w + N Q f."""
    return batch.requests * batch.prefix * rates.write + _suffixes(batch, rates)


def prewarmed(batch: Batch, rates: PrefixRates) -> Decimal:
    """Cost when a request of the prefix alone goes ahead: P w + N P r + N Q f."""
    read = batch.requests * batch.prefix * rates.read
    return batch.prefix * rates.write + read + _suffixes(batch, rates)


def _suffixes(batch: Batch, rates: PrefixRates) -> Decimal:
    return batch.requests * batch.suffix * rates.fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What of a dense decoder-only model decides the size of its cache and the work of a prompt.

    Attributes:
        params: parameters that each token goes through.
        kv_heads: heads whose keys and values are kept, in each layer.
        head_dim: numbers in a key, and in a value, of one head.
        value_bytes: of one such number; 2 for 16 bits.
        heads: query heads of a layer; None leaves the work of attention out.
    """

    params: float
    layers: int
    kv_heads: int
    head_dim: int
    value_bytes: float = 2.0
    heads: int | None = None

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of a cached token.

        2 (key and value) * layers * KV heads * head dimension * bytes of a number.
        """
        return 2 * self.layers * self.kv_heads * self.head_dim * self.value_bytes

    @property
    def attention_width(self) -> int:
        """Numbers in the queries of one layer and token; 0 leaves the work of attention out."""
        return (self.heads or 0) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What computes a prompt.

    Attributes:
        flops_per_second: of the data sheet, dense, at the model's precision.
        efficiency: the share of it that is reached, above 0 and at most 1.
    """

    flops_per_second: float
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What brings a cached prefix back.

    Attributes:
        bytes_per_second: above 0.
        latency_seconds: until the first byte, however short the prefix is.
    """

    bytes_per_second: float
    latency_seconds: float


def requests_that_fit(shape: ModelShape, *, memory_bytes: float, tokens: int) -> int:
    """How many requests of so many tokens fit into memory at the same time."""
    return math.floor(memory_bytes / (tokens * shape.kv_bytes_per_token))


def prefill_flops(shape: ModelShape, *, tokens: int, cached: int = 0) -> float:
    """Floating-point operations of computing a prompt after what is cached of it.

    2 * params * n for the matrices, and 4 * layers * attention width * (sum of the positions) for
    attention, where each of the n tokens looks at itself and at all before it: two products of
    two operations each. The n tokens are those at the positions cached + 1 to tokens.
    """
    new = tokens - cached
    positions = new * (tokens + cached + 1) / 2
    return 2 * shape.params * new + 4 * shape.layers * shape.attention_width * positions


def prefill_seconds(shape: ModelShape, machine: Machine, *, tokens: int, cached: int = 0) -> float:
    """Seconds of the same on a machine that does nothing else: operations / (peak * efficiency)."""
    work = prefill_flops(shape, tokens=tokens, cached=cached)
    return work / (machine.flops_per_second * machine.efficiency)


def transfer_seconds(shape: ModelShape, link: Link, *, tokens: int) -> float:
    """Seconds until a cached prefix is back: bytes / bandwidth + latency."""
    return tokens * shape.kv_bytes_per_token / link.bytes_per_second + link.latency_seconds


def offload_pays(shape: ModelShape, machine: Machine, link: Link, *, tokens: int) -> bool:
    """Whether bringing a prefix back is faster than computing it again."""
    back = transfer_seconds(shape, link, tokens=tokens)
    return back < prefill_seconds(shape, machine, tokens=tokens)


def shortest_offload(shape: ModelShape, machine: Machine, link: Link) -> int | None:
    """Tokens of the shortest prefix that is back faster than it is computed.

    None for none, and where it would have more than LONGEST_PREFIX tokens.

    Computing takes a n^2 + b n seconds, bringing back c n + latency; they meet at the larger root
    of a n^2 + (b - c) n - latency. Without latency, and where a token is fetched faster than it is
    computed, no prefix is too short: 1.
    """
    speed = machine.flops_per_second * machine.efficiency
    attention = 2 * shape.layers * shape.attention_width / speed
    gained = 2 * shape.params / speed + attention - shape.kv_bytes_per_token / link.bytes_per_second
    if gained <= 0 and not attention:
        return None
    root = math.sqrt(gained**2 + 4 * attention * link.latency_seconds)
    # The two forms of the root are equal; each loses digits where the other does not.
    if gained > 0:
        meets = 2 * link.latency_seconds / (gained + root)
    else:
        meets = (root - gained) / (2 * attention)
    if not meets <= LONGEST_PREFIX:
        return None
    shortest = max(1, math.floor(meets))
    while not offload_pays(shape, machine, link, tokens=shortest):
        shortest += 1
    return shortest
