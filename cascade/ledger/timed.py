"""A cache that keeps what was used within a time, whatever else is asked (APIs)."""

from dataclasses import replace

from cascade.caches import CacheCard
from cascade.ledger.cache import COLD, WEIGHT, Measure, Recent, Warm, shortfall
from cascade.ledger.runs import RunTree, Trail
from cascade.prefix import Chain

SWEEP = 16
"""Expired runs that are dropped at each use: more than a use can add, so they never pile up."""


class TimedCache:
    """Prefixes by their last use; each use renews them.

    A provider serves from many machines, and not each has seen what another has. So a hit that
    did not come says nothing of other prompts; it lowers the share of hits that come true, in
    small steps, and with it what is expected of the next one.

    Args:
        card: how the cache works.
        max_blocks: remembered at most, the latest used.
    """

    def __init__(self, card: CacheCard, max_blocks: int) -> None:
        self._measure = Measure(card)
        self._ttl = card.ttl_seconds or 0.0
        self._most = max_blocks
        self._tree = RunTree()
        self._block: float = card.block
        self._begun: Recent[Trail] = Recent()
        self._share = 1.0

    def warm(self, chain: Chain, now: float) -> Warm:
        """What of a prompt is warm now, times the share of such hits that come true."""
        held = self._tree.find(chain, now - self._ttl)
        tokens = int(self._measure.tokens(chain, held.length) * self._share)
        if not tokens:
            return COLD
        age = max(now - held.last, 0.0)
        return Warm(tokens=tokens, age_seconds=age, estimated=held.estimated)

    def began(self, chain: Chain, now: float, call: str = "") -> None:
        """From now on the prompt is in the cache."""
        if self._measure.keeps(chain):
            self._begun.keep(chain, self._alive(self._tree.use(chain, now), now), call)
            self._bound(chain.block, now)

    def ended(self, chain: Chain, now: float, _prompt: Chain | None = None) -> None:
        """The chain of the prompt and its answer is in the cache."""
        if self._measure.keeps(chain):
            self._tree.use(chain, now)
            self._bound(chain.block, now)

    def reported(
        self, chain: Chain, cached_tokens: int | None, asked: float, now: float, call: str = ""
    ) -> None:
        """What was read from the cache for a prompt that was sent after `asked`."""
        trail = self._begun.take(chain, call)
        self._tree.mark(chain, estimated=cached_tokens is None)
        if cached_tokens is None:
            return
        known = self._alive(self._tree.trail(chain), now) if trail is None else trail
        expected = self._measure.tokens(chain, known[-1][0]) if known else 0
        if expected and (cached_tokens >= expected or shortfall(known, 0, asked) is not None):
            came_true = min(cached_tokens / expected, 1.0)
            self._share += WEIGHT * (came_true - self._share)
        length = self._measure.length(chain, cached_tokens)
        if trail is None and length:
            self._tree.use(replace(chain, elements=chain.elements[:length]), now)
            self._bound(chain.block, now)

    def residence_seconds(self) -> float | None:
        """The time for which a prefix is kept."""
        return self._ttl

    def oldest(self) -> float | None:
        """When that was last used which is dropped next; None when there is nothing."""
        return self._tree.oldest

    def held_tokens(self, now: float) -> int:
        """Tokens that are held now; where they are estimated, at the latest estimate."""
        self._tree.forget(now - self._ttl)
        return int(self._tree.size * self._block)

    def _alive(self, trail: Trail, now: float) -> Trail:
        return [part for part in trail if part[1] >= now - self._ttl]

    def _bound(self, block: float, now: float) -> None:
        self._block = block
        self._tree.forget(now - self._ttl, at_most=SWEEP)
        if self._tree.size > self._most:
            self._tree.trim(self._most)
