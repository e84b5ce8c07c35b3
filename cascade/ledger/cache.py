"""What all kinds of caches have in common: what is asked of them, and how a report is read.

A report says what was warm when a request was sent; by the time it comes the request itself, and
others, have filled the cache. So what was known is kept from when the answer began, and a report
counts only against what was there before the request was sent.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from cascade.caches import CacheCard
from cascade.ledger.runs import Trail
from cascade.prefix import Chain

MAX_OPEN = 4_096
"""Requests that are remembered while their reports are awaited."""

WEIGHT = 0.05
"""Of one observation in a discounted mean: about the last twenty count."""

SLACK = 0.25
"""Of the expected tokens that a report may differ by where tokens are estimated."""

_IDENTIFYING = 256

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """What of a prompt a cache is expected to hold.

    Attributes:
        tokens: from the beginning on.
        age_seconds: since the longest held prefix was last used; None when nothing is held.
        estimated: it rests on an answer whose cached tokens were not reported.
    """

    tokens: int = 0
    age_seconds: float | None = None
    estimated: bool = False


COLD = Warm()


class Cache(Protocol):
    """One tier's cache at one replica. `now` is later at each call that changes something."""

    def warm(self, chain: Chain, now: float, /) -> Warm:
        """What of a prompt is warm now."""

    def began(self, chain: Chain, now: float, call: str = "", /) -> None:
        """From now on the prompt is in the cache."""

    def ended(self, chain: Chain, now: float, prompt: Chain | None = None, /) -> None:
        """The chain of the prompt and its answer is in the cache.

        What is behind the prompt is what a text is cut into, which is mostly what the model wrote.
        A report that misses nothing else says so, and nothing of what is gone.
        """

    def reported(
        self, chain: Chain, cached_tokens: int | None, asked: float, now: float, call: str = "", /
    ) -> None:
        """What was read from the cache for a prompt that was sent after `asked`."""

    def residence_seconds(self) -> float | None:
        """How long a prefix stays after its last use; None when not known."""

    def oldest(self) -> float | None:
        """When that was last used which is dropped next; None when there is nothing."""

    def held_tokens(self, now: float, /) -> int:
        """Tokens that are held now, about where they are estimated."""


class Recent(Generic[Kept]):
    """Something about each of the latest prompts, in bounded memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], Kept] = OrderedDict()

    def keep(self, chain: Chain, value: Kept, call: str = "") -> None:
        """Remembers a value for the chain, and the call if equal prompts may be under way.

        It replaces what there was; the oldest go.
        """
        kept, key = self._kept, (_identity(chain), call)
        kept[key] = value
        kept.move_to_end(key)
        if len(kept) > MAX_OPEN:
            kept.popitem(last=False)

    def take(self, chain: Chain, call: str = "") -> Kept | None:
        """What there is for the chain and call, which is forgotten thereby."""
        return self._kept.pop((_identity(chain), call), None)

    def get(self, chain: Chain, call: str = "") -> Kept | None:
        """What there is for the chain and call."""
        return self._kept.get((_identity(chain), call))


class Measure:
    """How a card counts what a chain shares with a cache."""

    def __init__(self, card: CacheCard) -> None:
        self._block = card.block
        self._minimum = card.minimum_tokens
        # An engine computes a prompt's last token in any case, or there would be no next one.
        self._computed = 0 if card.kind == "ttl" else 1

    def tokens(self, chain: Chain, length: int) -> int:
        """Tokens of a hit on so many bytes of the chain's elements."""
        shared = int(length // chain.width * chain.block)
        tokens = min(shared, chain.tokens - self._computed) // self._block * self._block
        return tokens if tokens >= self._minimum else 0

    def keeps(self, chain: Chain) -> bool:
        """Whether the prompt is long enough to be cached."""
        return chain.tokens >= self._minimum

    @staticmethod
    def length(chain: Chain, tokens: int) -> int:
        """Bytes of the chain's elements that so many tokens fill."""
        return min(int(tokens / chain.block) * chain.width, len(chain.elements))


def shortfall(trail: Trail, length: int, asked: float) -> float | None:
    """When that was last used at the latest which a report says is gone.

    Where the first missing run was used after the request was sent, nobody knows for what it was
    there before; what hangs below it and is older was.

    Args:
        trail: what was known of the prompt when its answer began.
        length: bytes of it that the report covers.
        asked: when the prompt was sent, at the earliest.
    """
    return next((last for end, last in trail if end > length and last <= asked), None)


def differs(chain: Chain, expected: int, reported: int) -> bool:
    """Whether a report contradicts what was expected, in tokens."""
    return abs(expected - reported) > (0 if chain.exact else SLACK * expected)


def _identity(chain: Chain) -> int:
    """Tells prompts apart that are under way at the same time, at a cost that does not grow."""
    elements = chain.elements
    return hash((chain.salt, chain.tokens, len(elements), elements[-_IDENTIFYING:]))
