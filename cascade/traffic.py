"""Learns what a tenant's requests want next, on which it depends what warming a prefix is worth.

A warm prefix is worth what it lets later turns save, or lets them do that would not pay cold. Let a
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
KEEP_USES: Final = 0.99

MAX_SESSIONS: Final = 100_000
MAX_PREFIXES: Final = 20_000
MAX_USES: Final = 20_000
MAX_WAITING: Final = 64
"""Turns of a conversation whose next want is waited for, by tier."""

_EDGES: Final = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)
_SHARES: Final = (0.02, 0.1, 0.22, 0.4, 0.6, 0.8, 1.0)
"""Bins of u, and what stands for each."""

_GAPS: Final = 18
"""Gaps from 1 s to 2^17 s, a day and a half, by powers of two."""

_PRIOR_USES: Final = 5.0
_PRIOR_AGAIN: Final = 0.8
_PRIOR_GAPS: Final = range(1, 9)
"""Before anything is known: four of five turns are followed by another, within 1 to 256 s."""

_ROUNDS: Final = 4
"""Of solving for d, from where it was the last time."""

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Want(NamedTuple):
    """How much a turn wanted a tier: u of the part of its prompt that others share, and of its own.

    0 or less is not at all, 1 or more at any price of warming it.
    """

    shared: float
    own: float


ALL: Final = Want(1.0, 1.0)
NONE: Final = Want(0.0, 0.0)


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
    """How much turns want a tier."""

    share: float = 1.0
    bins: list[float] = field(default_factory=lambda: [0.0] * (len(_SHARES) - 1) + [1.0])
    worth: float = 1.0

    def learn(self, u: float) -> None:
        """Another turn."""
        self.share = KEEP_WANTS * self.share + (1.0 - KEEP_WANTS) * (u > 0.0)
        if u > 0.0:
            self.bins = [KEEP_WANTS * each for each in self.bins]
            self.bins[bisect_left(_EDGES, u)] += 1.0 - KEEP_WANTS

    def solve(self, reached: float) -> float:
        """E[min(1, u + d)], where d is what it makes of the chance that such a turn comes."""
        total, expected = sum(self.bins), 1.0
        for _ in range(_ROUNDS):
            d = self.worth
            expected = sum(b * min(1.0, u + d) for b, u in zip(self.bins, _SHARES, strict=True))
            expected /= total
            self.worth = reached * expected
        return expected


@dataclass(slots=True)
class _Prefix:
    """One shared part of prompts."""

    last: float
    gap: float = 0.0
    weight: float = 0.0
    wants: dict[str, _Wants] = field(default_factory=dict)


def _prior_gaps() -> list[float]:
    each = _PRIOR_USES * _PRIOR_AGAIN / len(_PRIOR_GAPS)
    return [each if b in _PRIOR_GAPS else 0.0 for b in range(_GAPS)]


@dataclass(slots=True)
class _Uses:
    """How soon a tenant's conversations want a tier again."""

    count: float = _PRIOR_USES
    turns: int = 0
    gaps: list[float] = field(default_factory=_prior_gaps)
    wants: _Wants = field(default_factory=_Wants)

    def within(self, seconds: float) -> float:
        """P(a turn that wants it follows a turn within that time)."""
        if seconds <= 0.0:
            return 0.0
        place = min(float(_GAPS), max(0.0, math.log2(seconds) + 1.0))
        whole = int(place)
        found = sum(self.gaps[:whole])
        if whole < _GAPS:
            found += self.gaps[whole] * (place - whole)
        return min(0.999, found / self.count)


@dataclass(slots=True)
class _Session:
    """One conversation under way: its turns that wait for one that wants a tier."""

    waiting: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    answered: str = ""


class Traffic:
    """What turns want, by tenant.

    Args:
        clock: seconds that only go up.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._prefixes: OrderedDict[tuple[str, str], _Prefix] = OrderedDict()
        self._uses: OrderedDict[tuple[str, str], _Uses] = OrderedDict()
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def began(self, whose: Whose) -> None:
        """A turn begins."""
        now, key = self._clock(), (whose.tenant, whose.stable)
        prefix = self._prefixes.setdefault(key, _Prefix(last=now))
        if now > prefix.last or prefix.weight:
            prefix.gap = KEEP_GAP * prefix.gap + (now - prefix.last)
            prefix.weight = KEEP_GAP * prefix.weight + 1.0
        prefix.last = now
        _bound(self._prefixes, key, MAX_PREFIXES)

    def ended(self, whose: Whose, wants: Mapping[str, Want], answered: str = "") -> None:
        """A turn is over.

        Args:
            whose: turn.
            wants: by tier, of all that could have been asked.
            answered: the tier whose answer was taken; empty when there was none.
        """
        if (prefix := self._prefixes.get((whose.tenant, whose.stable))) is not None:
            for tier, want in wants.items():
                prefix.wants.setdefault(tier, _Wants()).learn(want.shared)
        if not whose.session:
            return
        now, key = self._clock(), (whose.tenant, whose.session)
        session = self._sessions.setdefault(key, _Session())
        _bound(self._sessions, key, MAX_SESSIONS)
        for tier, want in wants.items():
            self._waited(whose.tenant, tier, session, want.own, now)
        session.answered = answered or session.answered

    def _waited(self, tenant: str, tier: str, session: _Session, u: float, now: float) -> None:
        uses, waiting = self._of(tenant, tier), session.waiting.setdefault(tier, [])
        uses.wants.learn(u)
        if u > 0.0:
            for since, turn in waiting:  # counts for as little as its turn does by now
                uses.gaps[_bin(now - since)] += KEEP_USES ** (uses.turns - turn)
            waiting.clear()
        uses.turns += 1
        uses.count = KEEP_USES * uses.count + 1.0
        uses.gaps = [KEEP_USES * each for each in uses.gaps]
        waiting.append((now, uses.turns))
        del waiting[:-MAX_WAITING]

    def served_by(self, tenant: str, session: str) -> str:
        """The tier that answered a conversation's last turn; empty when that is not known."""
        known = self._sessions.get((tenant, session))
        return known.answered if known else ""

    def shared(self, whose: Whose, tier: str, lifetime: float, age: float) -> Worth:
        """What a call leaves of the part that other conversations share.

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

    def own(self, tenant: str, tier: str, lifetime: float, age: float) -> Worth:
        """The same of the conversation's own part."""
        uses = self._uses.get((tenant, tier)) or _Uses()
        reached, sooner = uses.within(lifetime), uses.within(lifetime - age)
        expected = uses.wants.solve(reached)
        return Worth(reached * expected, (reached - sooner) * expected)

    def _of(self, tenant: str, tier: str) -> _Uses:
        key = (tenant, tier)
        known = self._uses.setdefault(key, _Uses())
        _bound(self._uses, key, MAX_USES)
        return known


def _bin(gap: float) -> int:
    """Bin b holds gaps from 2^(b-1) to 2^b seconds, the first those below one."""
    return 0 if gap < 1.0 else min(_GAPS - 1, int(math.log2(gap)) + 1)


def _bound(known: "OrderedDict[_Key, _Value]", key: _Key, most: int) -> None:
    """Move what was just used to the end, and forget what was used longest ago beyond the bound."""
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
