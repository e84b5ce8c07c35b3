"""The caches of all tiers and replicas, as one thing to ask.

All of it is in memory and belongs to one thread, that of the event loop.
"""

import math
import time
from collections.abc import Callable, Mapping

from cascade.caches import CacheCard
from cascade.ledger.blocks import BlockCache
from cascade.ledger.cache import COLD, Cache, Recent, Warm
from cascade.ledger.slots import SlotCache
from cascade.ledger.timed import TimedCache
from cascade.prefix import Chain

MAX_BLOCKS = 1_000_000


class Ledger:
    """The caches of all tiers and replicas.

    Args:
        cards: by tier; a tier without one has no cache that could be known.
        max_blocks: how many blocks are remembered of a cache whose own size is not known.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        cards: Mapping[str, CacheCard],
        *,
        max_blocks: int = MAX_BLOCKS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cards = dict(cards)
        self._max_blocks = max_blocks
        self._clock = clock
        self._latest = -math.inf
        self._caches: dict[str, dict[str | None, Cache]] = {tier: {} for tier in cards}
        self._asked: dict[str, Recent[float]] = {tier: Recent() for tier in cards}

    def warm(self, tier: str, chain: Chain, *, replica: str | None = None, call: str = "") -> Warm:
        """What of a prompt is warm now; without a replica, at the one that holds the most.

        Args:
            tier: whose cache it is.
            chain: of the prompt.
            replica: which of its servers.
            call: tells apart equal prompts that are under way at the same time; the same in `began`
                and `reported`.
        """
        caches = self._caches.get(tier)
        if caches is None:
            return COLD
        now = self._latest = max(self._clock(), self._latest)
        self._asked[tier].keep(chain, now, call)
        if replica is None:
            found = (each.warm(chain, now) for each in caches.values())
            return max(found, key=_most, default=COLD)
        cache = caches.get(replica)
        return COLD if cache is None else cache.warm(chain, now)

    def age_seconds(self, tier: str, chain: Chain) -> float | None:
        """How long ago a prefix was last used, at the replica that holds the most; None if cold."""
        caches, now = self._caches.get(tier, {}), max(self._clock(), self._latest)
        found = (each.warm(chain, now) for each in caches.values())
        return max(found, key=_most, default=COLD).age_seconds

    def began(self, tier: str, chain: Chain, *, replica: str | None = None, call: str = "") -> None:
        """The first piece of an answer came: from now on its prompt is in the cache."""
        if (cache := self._cache(tier, replica)) is not None:
            cache.began(chain, self._later(), call)

    def ended(
        self, tier: str, chain: Chain, *, prompt: Chain | None = None, replica: str | None = None
    ) -> None:
        """An answer is whole: its prompt and itself, as far as the model has read it, are cached.

        A model never reads the last token that it wrote, which an answer that was cut off ends
        with; one that ended by itself was read whole, as its end mark came after it.

        Args:
            tier: whose answer it is.
            chain: of both.
            prompt: of the prompt alone, which is certain; the answer may have been written in other
                tokens than its text is cut into. Without it all of the chain is taken as certain.
            replica: which of the tier's servers gave it.
        """
        if (cache := self._cache(tier, replica)) is not None:
            cache.ended(chain, self._later(), prompt)

    def reported(
        self,
        tier: str,
        chain: Chain,
        cached_tokens: int | None,
        *,
        replica: str | None = None,
        call: str = "",
    ) -> None:
        """What the upstream says it read from its cache for a prompt; None: it does not say.

        It is held against what was there when `warm` was last asked about the prompt. If nobody
        asked, nobody knows since when it was under way, and less than expected proves nothing.
        """
        if (cache := self._cache(tier, replica)) is not None:
            asked = self._asked[tier].get(chain, call)
            sent = -math.inf if asked is None else asked
            cache.reported(chain, cached_tokens, sent, self._later(), call)

    def residence_seconds(self, tier: str, *, replica: str | None = None) -> float | None:
        """How long a prefix stays after its last use, as things are; None when not known.

        Without a replica, the mean of those that know; before any was asked, what the card states.
        """
        caches = self._caches.get(tier, {})
        if replica is not None:
            return caches[replica].residence_seconds() if replica in caches else None
        if not caches and tier in self._cards:
            return self._cards[tier].ttl_seconds
        known = [s for each in caches.values() if (s := each.residence_seconds()) is not None]
        return sum(known) / len(known) if known else None

    def victim_age_seconds(self, tier: str, *, replica: str | None = None) -> float | None:
        """How long ago that was last used which goes next at a replica; None where nothing is."""
        cache = self._caches.get(tier, {}).get(replica)
        last = None if cache is None else cache.oldest()
        return None if last is None else max(self._clock() - last, 0.0)

    def held_at(self, tier: str) -> dict[str | None, int]:
        """Tokens that each of a tier's replicas holds, of those that were asked so far."""
        caches, now = self._caches.get(tier, {}), max(self._clock(), self._latest)
        return {replica: cache.held_tokens(now) for replica, cache in caches.items()}

    def held_tokens(self, tier: str) -> int | None:
        """Tokens that a tier's replicas hold together; None where its cache is not known."""
        caches, now = self._caches.get(tier), max(self._clock(), self._latest)
        return None if caches is None else sum(c.held_tokens(now) for c in caches.values())

    def _cache(self, tier: str, replica: str | None) -> Cache | None:
        caches = self._caches.get(tier)
        if caches is None:
            return None
        if replica not in caches:
            caches[replica] = self._empty(self._cards[tier])
        return caches[replica]

    def _empty(self, card: CacheCard) -> Cache:
        if card.kind == "slots":
            return SlotCache(card)
        made = BlockCache if card.kind == "blocks" else TimedCache
        return made(card, self._max_blocks)

    def _later(self) -> float:
        """Now, and after everything before it, so that times tell the order."""
        now = self._clock()
        if now <= self._latest:
            now = math.nextafter(self._latest, math.inf)
        self._latest = now
        return now


def _most(warm: Warm) -> tuple[int, float]:
    return warm.tokens, -(warm.age_seconds or 0.0)
