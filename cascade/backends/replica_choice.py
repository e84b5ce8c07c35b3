"""Which of a model's servers is asked: the rules, apart from any server.

The server that holds a prompt's beginning answers sooner and cheaper, and sending everything there
drowns it. Each rule weighs the two in its own way. They know nothing of sockets, so that the
simulator runs the very rules that serve.
"""

import hashlib
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from cascade.backends.replica_shares import Among, Popularity, Shares

RuleName = Literal[
    "round_robin", "random", "session", "prefix_hash", "cache_aware", "balanced_cache"
]

TWICE = 2
"""A preferred server is left when it has more than so many times the alternative's in flight,"""
MORE_IN_FLIGHT = 5
"""and more than so many above it."""

HOT = 0.01
"""A prefix with a larger share of the traffic may be copied to one more server."""
OVER = 1.1
"""A server with more than so many fair shares of the requests is relieved by a copy."""
HOLDS = 0.9
"""A server holds a prompt if it has so much of what the best has,"""
HIT = 0.5
"""and the best has so much of the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What the rules know of a request.

    Attributes:
        session: the conversation.
        prefix: what begins its prompt and that of others: tools, system prompt, documents.
        tokens: of the whole prompt; 0 where that is not known.
        prefix_tokens: of what `prefix` stands for.
    """

    session: str
    prefix: str
    tokens: int = 0
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A server that could be asked.

    Attributes:
        name: which one.
        in_flight: requests assigned to it that have not ended.
        pending_tokens: prompt tokens assigned to it that it has still to compute.
        warm_tokens: of this prompt, in its cache.
        victim_age_seconds: how long ago that was last used which goes next there; None while there
            is room, and where nobody knows.
    """

    name: str
    in_flight: int = 0
    pending_tokens: int = 0
    warm_tokens: int = 0
    victim_age_seconds: float | None = None


class Rule(Protocol):
    """A way to choose.

    Attributes:
        reads_caches: it wants to know what is warm where.
    """

    reads_caches: bool

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:
        """One of the candidates, of which there is at least one, always in the same order."""
        ...


class RoundRobin:
    """One after the other."""

    reads_caches = False

    def __init__(self) -> None:
        self._next = 0

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:  # noqa: ARG002
        """The next."""
        self._next += 1
        return candidates[(self._next - 1) % len(candidates)]


class Random:
    """Any.

    Args:
        chance: evenly distributed in [0, 1).
    """

    reads_caches = False

    def __init__(self, chance: Callable[[], float]) -> None:
        self._chance = chance

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:  # noqa: ARG002
        """One of them."""
        return candidates[int(self._chance() * len(candidates))]


class SessionHash:
    """A conversation stays where it began, and moves only when its server goes."""

    reads_caches = False

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:
        """The conversation's."""
        return max(candidates, key=lambda each: draw(prompt.session, each.name))


class PrefixHash:
    """What begins alike goes to the same server."""

    reads_caches = False

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:
        """The prefix's."""
        return max(candidates, key=lambda each: draw(prompt.prefix, each.name))


class CacheAware:
    """Where the most is warm, unless too many are there already.

    Servers that hold the same, like a system prompt that all have seen, are told apart by their
    load, and idle ones by the conversation's hash.
    """

    reads_caches = True

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:
        """The warmest, or the least loaded."""

        def idlest(each: Candidate) -> tuple[int, int]:
            return -each.in_flight, draw(prompt.session, each.name)

        preferred = max(candidates, key=lambda each: (each.warm_tokens, *idlest(each)))
        other = max(candidates, key=idlest)
        return other if _crowded(preferred, other) else preferred


class BalancedCache:
    """The caches of all servers as one large cache, at even shares of the requests.

    What is warm nowhere goes to a server with nothing to compute, and of those to the one that
    drops the oldest thing for it: so nothing is dropped anywhere that was used later than what
    stays elsewhere. What is warm goes to the holder with the least share and backlog. A holder
    above its share is relieved by a copy, and only of what is asked often: all copies take room
    from something else.
    """

    reads_caches = True

    def __init__(self) -> None:
        self._shares = Shares()
        self._traffic = Popularity()

    def choose(self, prompt: Prompt, candidates: Sequence[Candidate]) -> Candidate:
        """A holder, or who can take it best."""
        best = max(each.warm_tokens for each in candidates)
        # A conversation under way is asked for by nobody else, however common its beginning is.
        asked = prompt.prefix if best <= prompt.prefix_tokens else prompt.session
        traffic = self._traffic.count(asked)
        shares = self._shares.among([each.name for each in candidates])
        if best < HIT * prompt.tokens or best == 0:
            chosen = _emptiest(candidates, shares)
        else:
            chosen = _holder(prompt, candidates, shares, copied=traffic > HOT)
        shares.count(chosen.name)
        return chosen


def _holder(
    prompt: Prompt, candidates: Sequence[Candidate], shares: Among, *, copied: bool
) -> Candidate:
    """The holder to ask; or, to be copied to, a server that has time for it."""
    enough = HOLDS * max(each.warm_tokens for each in candidates)
    idlest = min(candidates, key=lambda each: each.in_flight)

    def busy(each: Candidate) -> tuple[bool, float, int]:
        backlog = each.pending_tokens / max(prompt.tokens, 1)
        weight = shares.over_fair(each.name) + backlog
        return _crowded(each, idlest), weight, each.in_flight

    holder = min((each for each in candidates if each.warm_tokens >= enough), key=busy)
    if not copied or shares.over_fair(holder.name) <= OVER:
        return holder
    idle = [c for c in candidates if not c.pending_tokens and c.warm_tokens < enough]
    under = [each for each in idle if shares.over_fair(each.name) < 1]
    return _emptiest(under, shares) if under else holder


def _crowded(preferred: Candidate, other: Candidate) -> bool:
    above = preferred.in_flight - other.in_flight
    return above > MORE_IN_FLIGHT and preferred.in_flight > TWICE * other.in_flight


def _emptiest(candidates: Sequence[Candidate], shares: Among) -> Candidate:
    """Who has the least to compute, and drops the oldest."""

    def cost(each: Candidate) -> tuple[int, float, float]:
        age = math.inf if each.victim_age_seconds is None else each.victim_age_seconds
        return each.pending_tokens, -age, shares.over_fair(each.name)

    return min(candidates, key=cost)


_RULES: Final[dict[RuleName, Callable[[Callable[[], float]], Rule]]] = {
    "round_robin": lambda _: RoundRobin(),
    "random": Random,
    "session": lambda _: SessionHash(),
    "prefix_hash": lambda _: PrefixHash(),
    "cache_aware": lambda _: CacheAware(),
    "balanced_cache": lambda _: BalancedCache(),
}


def rule_of(
    name: RuleName,
    chance: Callable[[], float] = random.random,  # noqa: S311 - it spreads load, it keeps no secret
) -> Rule:
    """A rule with a memory of its own.

    Args:
        name: which.
        chance: evenly distributed in [0, 1).
    """
    return _RULES[name](chance)


def draw(key: str, name: str) -> int:
    """What a server draws for a key; the largest has it (rendezvous hashing).

    When a server goes, only its keys move, and they spread over all others (Thaler and
    Ravishankar, 1998).
    """
    both = f"{key}\x1f{name}".encode()
    return int.from_bytes(hashlib.blake2b(both, digest_size=8).digest(), "big")
