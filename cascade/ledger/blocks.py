"""A cache of full blocks that drops the least recently used ones when its memory is full (vLLM)."""

from dataclasses import replace

from cascade.caches import CacheCard
from cascade.ledger.cache import COLD, WEIGHT, Measure, Recent, Warm, differs, shortfall
from cascade.ledger.runs import RunTree, Trail
from cascade.prefix import Chain

GROWTH = 1.1
"""By which a learned capacity rises when more was there than expected."""


class BlockCache:
    """All prompts of a replica share its blocks, each salt's among themselves.

    Args:
        card: how the cache works.
        max_blocks: remembered at most; the capacity until a report tells of a smaller one.
    """

    def __init__(self, card: CacheCard, max_blocks: int) -> None:
        self._measure = Measure(card)
        self._tree = RunTree()
        self._block: float = card.block
        self._begun: Recent[Trail] = Recent()
        self._certain: Recent[int] = Recent()
        self._stated = card.capacity_tokens
        self._most = max_blocks
        self._known = self._stated is not None
        self._capacity = max_blocks
        self._evicted_age: float | None = None

    def warm(self, chain: Chain, now: float) -> Warm:
        """What of a prompt is warm now."""
        held = self._tree.find(chain)
        tokens = self._measure.tokens(chain, held.length)
        if not tokens:
            return COLD
        age = max(now - held.last, 0.0)
        return Warm(tokens=tokens, age_seconds=age, estimated=held.estimated)

    def began(self, chain: Chain, now: float, call: str = "") -> None:
        """From now on the prompt is in the cache."""
        if self._measure.keeps(chain):
            self._begun.keep(chain, self._tree.use(chain, now), call)
            self._evict(chain.block, now)

    def ended(self, chain: Chain, now: float, prompt: Chain | None = None) -> None:
        """The chain of the prompt and its answer is in the cache."""
        if self._measure.keeps(chain):
            if prompt is not None:
                self._certain.keep(_beginning(chain, len(chain.elements)), len(prompt.elements))
            self._tree.use(chain, now)
            self._evict(chain.block, now)

    def reported(
        self, chain: Chain, cached_tokens: int | None, asked: float, now: float, call: str = ""
    ) -> None:
        """What was read from the cache for a prompt that was sent after `asked`.

        If a block is gone, so is all that was last used no later than it: what goes first is the
        least recently used. Where the capacity is not stated, it is learned from that.
        """
        trail = self._begun.take(chain, call)
        self._tree.mark(chain, estimated=cached_tokens is None)
        if cached_tokens is None:
            return
        known = self._tree.trail(chain) if trail is None else trail
        held = known[-1][0] if known else 0
        expected = self._measure.tokens(chain, held)
        length = self._measure.length(chain, cached_tokens)
        if differs(chain, expected, cached_tokens):
            if cached_tokens > expected:
                self._grow((length - held) // chain.width)
            elif not self._was_guessed(chain, held, length):
                self._drop_older(shortfall(known, length, asked))
        if trail is None and length:
            self._tree.use(replace(chain, elements=chain.elements[:length]), now)
            self._evict(chain.block, now)

    def residence_seconds(self) -> float | None:
        """The age at which blocks are dropped lately; None while there is room."""
        return self._evicted_age if self._known and self._tree.size >= self._capacity else None

    def oldest(self) -> float | None:
        """When that was last used which is dropped next; None when there is nothing."""
        return self._tree.oldest

    def held_tokens(self, _now: float) -> int:
        """Tokens that are held now; where they are estimated, at the latest estimate."""
        return int(self._tree.size * self._block)

    def _evict(self, block: float, now: float) -> None:
        self._block = block
        if self._stated is not None:
            self._capacity = int(self._stated / block)
        if self._tree.size <= self._capacity:
            return
        for _, last in self._tree.trim(self._capacity):
            age = now - last
            known = self._evicted_age
            self._evicted_age = age if known is None else known + WEIGHT * (age - known)

    def _was_guessed(self, chain: Chain, held: int, length: int) -> bool:
        """Whether only tokens of an answer were missing, which its text need not tell."""
        certain = self._certain.get(_beginning(chain, held))
        return certain is not None and length >= certain

    def _drop_older(self, last: float | None) -> None:
        """Drops what is as old, and halves the way from what was held to what is still there."""
        if last is None:
            return
        before = self._tree.size
        self._tree.forget(last)
        if self._stated is None:
            self._known = True
            self._capacity = max((min(before, self._capacity) + self._tree.size) // 2, 1)

    def _grow(self, blocks: int) -> None:
        if self._known and self._stated is None:
            self._capacity = min(int(self._capacity * GROWTH) + max(blocks, 0), self._most)


def _beginning(chain: Chain, length: int) -> Chain:
    """So many bytes of a chain, the same whatever goes on behind them."""
    return replace(chain, elements=chain.elements[:length], tokens=0)
