"""Tells a provider's cache what it cannot know: where a prompt is the same again, and for whom.

Some keep only what is marked, some find an entry only where the requests of a prefix come to the
same machine. Hints change nothing that the model reads.
"""

import math
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import blake2b

from cascade.protocols import Backend
from cascade.tiers.stable import stable_key
from cascade.types import ChatRequest, Chunk

Hint = Callable[[ChatRequest], ChatRequest]
"""Adds to a request what a cache goes by."""

CACHE_KEY = "prompt_cache_key"
_MEMORY_SECONDS = 120.0
"""How far back a rate looks: a request counts for 1/e of itself after that time."""

_MAX_PREFIXES = 10_000
_SHRINK = 0.6
"""Of what fewer shards could take, at which there are fewer: rates go up and down by chance."""


class HintedBackend(Backend):
    """Another backend, asked with hints for its provider's cache.

    Args:
        inner: the backend that is asked.
        hints: what is added, in this order.
    """

    def __init__(self, inner: Backend, *hints: Hint) -> None:
        self._inner = inner
        self._hints = hints

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask with the hints."""
        for hint in self._hints:
            request = hint(request)
        async with aclosing(self._inner.stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()


@dataclass(slots=True)
class _Traffic:
    """How often a prefix was asked for lately.

    Attributes:
        count: of requests, each discounted by its age.
        at: when the last one came.
        shards: keys that they are spread over.
    """

    count: float
    at: float
    shards: int


class CacheKeys:
    """Gives each request a `prompt_cache_key`: requests of a key go to one machine, if it can.

    A key stands for a tenant's tools and system prompt. One machine takes about 15 requests a
    minute; what comes on top goes to others, which know nothing of the prefix. So a prefix that is
    asked for more often has several keys, as many as its own rate wants, and a conversation stays
    with one of them. A key of the client's own is kept.

    Args:
        per_minute: requests that a key can take, of this process's.
        max_prefixes: how many are remembered, those last asked for; one that was forgotten begins
            again with one key.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        *,
        per_minute: float = 15.0,
        max_prefixes: int = _MAX_PREFIXES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._max_prefixes = max_prefixes
        self._clock = clock
        self._known: OrderedDict[str, _Traffic] = OrderedDict()

    def __call__(self, request: ChatRequest) -> ChatRequest:
        """The request with a key; the same object when it has one."""
        if request.params.get(CACHE_KEY) is not None:
            return request
        name = stable_key(request)
        shard = shard_of(request.session or request.id, self._shards(name))
        return replace(request, params={**request.params, CACHE_KEY: f"{name}-{shard}"})

    @property
    def remembered(self) -> int:
        """Of how many prefixes the rate is known."""
        return len(self._known)

    def _shards(self, name: str) -> int:
        """Count a request for a prefix, and say how many keys it has now."""
        now = self._clock()
        known = self._known.pop(name, None) or _Traffic(0.0, now, 1)
        known.count = known.count * math.exp((known.at - now) / _MEMORY_SECONDS) + 1.0
        known.at = now
        self._known[name] = known
        if len(self._known) > self._max_prefixes:
            self._known.popitem(last=False)
        rate = known.count * 60.0 / _MEMORY_SECONDS
        wanted = max(1, math.ceil(rate / self._per_minute))
        if wanted > known.shards or rate < _SHRINK * self._per_minute * (known.shards - 1):
            known.shards = wanted
        return known.shards


def shard_of(session: str, shards: int) -> int:
    """Which of so many shards a session is in, from 0; the same in each process.

    Jump consistent hashing (Lamping and Veach, 2014): one shard more moves a session with a chance
    of 1 in the new number of shards, and only into the new one.
    """
    seed = blake2b(session.encode(errors="surrogatepass"), digest_size=8)
    key = int.from_bytes(seed.digest())
    shard, candidate = 0, 0
    while candidate < shards:
        shard = candidate
        key = (key * 2862933555777941757 + 1) % (1 << 64)
        candidate = int((shard + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return shard
