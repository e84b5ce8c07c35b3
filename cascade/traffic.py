"""Learns what a tenant's requests want next, on which it depends what warming a prefix is worth.

It is about the part of a prompt that a tenant's conversations share: tools, system prompt, pack. A
warm one is worth what it lets later turns save, or lets them do that would not pay cold. Let a
turn's surplus be what asking a tier with its prefix warm would gain over the best it can do else,
and u that surplus as a share of what the prefix costs more cold than warm. With P(t) the chance
that a turn with u > 0 comes within t, and T the time for which a prefix stays, the worth d of a
prefix that is warm now, as the same share, satisfies

    d = P(T) E[min(1, u + d) | u > 0]

for such a turn either would have paid to warm the prefix itself (1), or takes its surplus and
leaves the prefix warm again (u + d). The equation has one solution, since P < 1. So nobody has to
believe that a tier is warm for it to become so: what counts is what would be asked of it then.

All of it is learned from the requests as they come, newer ones counting more, and starts from the
assumption that every turn wants every tier.

What a conversation alone would read again is left out. In simulation, crediting it by the chance
that the conversation goes back to the tier in time made most kinds of traffic dearer at the same
quality: it binds conversations to large models (docs/decisions/008).
"""

import math
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

KEEP_WANTS: Final = 0.98
"""What a turn is worth once there is a newer one: about fifty turns are remembered."""

KEEP_GAP: Final = 0.95

MAX_SESSIONS: Final = 100_000
MAX_PREFIXES: Final = 20_000

_EDGES: Final = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)
_SHARES: Final = (0.02, 0.1, 0.22, 0.4, 0.6, 0.8, 1.0)
"""Bins of u, and what stands for each."""

_PRIOR_TURNS: Final = 4.0
"""Turns that are taken to have wanted a tier, at any price, before there were any."""

_ROUNDS: Final = 4
"""Of solving for d, from where it was the last time."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose turn it is.

    Attributes:
        stable: what stands for the part of the prompt that other conversations share.
    """

    tenant: str
    session: str
    stable: str = ""


class Worth(NamedTuple):
    """What a call leaves to later ones, as a share of what the tokens cost more cold than warm.

    Attributes:
        warmed: of tokens that were cold and are warm after it.
        renewed: of tokens that were warm and stay so for longer.
    """

    warmed: float
    renewed: float


@dataclass(slots=True)
class _Wants:
    """How much turns want a tier: those that did, by their u, and how many turns there were."""

    bins: list[float] = field(default_factory=lambda: [0.0] * (len(_SHARES) - 1) + [_PRIOR_TURNS])
    turns: float = _PRIOR_TURNS
    worth: float = 1.0

    @property
    def share(self) -> float:
        """Of the turns that want it at all."""
        return sum(self.bins) / self.turns

    def learn(self, u: float) -> None:
        """Another turn."""
        self.turns = KEEP_WANTS * self.turns + 1.0
        self.bins = [KEEP_WANTS * each for each in self.bins]
        if u > 0.0:
            self.bins[bisect_left(_EDGES, u)] += 1.0

    def solve(self, reached: float) -> float:
        """E[min(1, u + d)], where d is what it makes of the chance that such a turn comes."""
        total, expected = sum(self.bins), 0.0
        for _ in range(_ROUNDS):
            d = self.worth
            found = sum(b * min(1.0, u + d) for b, u in zip(self.bins, _SHARES, strict=True))
            expected = found / total if total else 0.0
            self.worth = reached * expected
        return expected


@dataclass(slots=True)
class _Prefix:
    """One shared part of prompts."""

    last: float
    gap: float = 0.0
    weight: float = 0.0
    wants: dict[str, _Wants] = field(default_factory=dict)


class Traffic:
    """What turns want, by tenant.

    Args:
        clock: seconds that only go up.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._prefixes: OrderedDict[tuple[str, str], _Prefix] = OrderedDict()
        self._served: OrderedDict[tuple[str, str], str] = OrderedDict()

    def began(self, whose: Whose) -> None:
        """A turn begins."""
        now, key = self._clock(), (whose.tenant, whose.stable)
        prefix = self._prefixes.setdefault(key, _Prefix(last=now))
        if now > prefix.last or prefix.weight:
            prefix.gap = KEEP_GAP * prefix.gap + max(0.0, now - prefix.last)
            prefix.weight = KEEP_GAP * prefix.weight + 1.0
        prefix.last = max(now, prefix.last)
        _bound(self._prefixes, key, MAX_PREFIXES)

    def ended(self, whose: Whose, wants: Mapping[str, float], answered: str = "") -> None:
        """A turn is over.

        Args:
            whose: turn.
            wants: u by tier, of all that could have been asked; 0 or less is a turn that did not
                want the tier, 1 or more one that wanted it at any price of warming it.
            answered: the tier whose answer was taken; empty when there was none.
        """
        if (prefix := self._prefixes.get((whose.tenant, whose.stable))) is not None:
            for tier, u in wants.items():
                prefix.wants.setdefault(tier, _Wants()).learn(u)
        if answered and whose.session:
            key = (whose.tenant, whose.session)
            self._served[key] = answered
            _bound(self._served, key, MAX_SESSIONS)

    def served_by(self, tenant: str, session: str) -> str:
        """The tier that answered a conversation's last turn; empty when that is not known."""
        return self._served.get((tenant, session), "")

    def worth(self, whose: Whose, tier: str, lifetime: float, age: float) -> Worth:
        """What a call leaves of the part of its prompt that other conversations share.

        Args:
            whose: turn.
            tier: that is called.
            lifetime: seconds for which a prefix stays after its last use.
            age: seconds since what is warm was used.
        """
        prefix = self._prefixes.get((whose.tenant, whose.stable))
        if prefix is None or prefix.gap <= 0.0:
            return Worth(0.0, 0.0)
        wants = prefix.wants.setdefault(tier, _Wants())
        rate = wants.share * prefix.weight / prefix.gap
        reached = -math.expm1(-rate * lifetime)
        expected = wants.solve(reached)
        sooner = -math.expm1(-rate * max(0.0, lifetime - age))
        return Worth(reached * expected, (reached - sooner) * expected)


def _bound(known: "OrderedDict[_Key, _Value]", key: _Key, most: int) -> None:
    """Move what was just used to the end, and forget what was used longest ago beyond the bound."""
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
