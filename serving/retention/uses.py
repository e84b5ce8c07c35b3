"""Adds up how much of the prompts comes back within how long.

A prompt has three pieces: tools and system prompt, which any conversation of the tenant renews; the
conversation as it was last sent to the tier, which only itself renews; and what is new, which is
written in any case. Each use of a piece is held against the times to live that are compared. That
prompts only ever grow is taken for granted: what changes lose is the doctor's to say.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from serving.doctor.calls import Call
from serving.retention.gaps import Gaps

MAX_REMEMBERED = 20_000
MAX_PINGS = 24

Piece = Literal["shared", "conversation"]
PIECES: tuple[Piece, ...] = ("shared", "conversation")


@dataclass(slots=True)
class Waits:
    """What pings would have done for one piece: by how many were needed before the next use.

    Attributes:
        read: tokens that one ping reads, by that number.
        saved: tokens that it would have kept from being written again.
        never: tokens that a ping reads of prefixes that were not used again, or after too many.
    """

    read: dict[int, int] = field(default_factory=dict)
    saved: dict[int, int] = field(default_factory=dict)
    never: int = 0

    def add(self, pings: float, read: int, saved: int) -> None:
        """A use after a gap that needs so many pings."""
        if pings > MAX_PINGS:
            self.never += read
        elif pings >= 1:
            number = int(pings)
            self.read[number] = self.read.get(number, 0) + read
            self.saved[number] = self.saved.get(number, 0) + saved


@dataclass(slots=True)
class Kept:
    """What a time to live would have done: prompt tokens that are read, and that are written."""

    read: int = 0
    written: int = 0
    waits: dict[Piece, Waits] = field(default_factory=lambda: {piece: Waits() for piece in PIECES})


@dataclass(slots=True)
class TierUses:
    """The uses of one tier.

    Attributes:
        calls: whose prompt tokens are reported.
        unreported: calls of which they are not.
        kept: by time to live in seconds.
        tools: gaps between a call of tools and the request with their results.
    """

    calls: int = 0
    unreported: int = 0
    prompt_tokens: int = 0
    kept: dict[float, Kept] = field(default_factory=dict)
    tools: Gaps = field(default_factory=Gaps)


@dataclass(frozen=True, slots=True)
class _Use:
    at: float
    tokens: int
    tier: str
    request_id: str = ""
    asks_tools_until: float | None = None


class _Recent:
    """The last use of each prefix, of those that were used last."""

    def __init__(self, forget: Callable[[_Use], None]) -> None:
        self._uses: OrderedDict[Hashable, _Use] = OrderedDict()
        self._forget = forget

    def swap(self, key: Hashable, use: _Use) -> _Use | None:
        before = self._uses.pop(key, None)
        self._uses[key] = use
        if len(self._uses) > MAX_REMEMBERED:
            self._forget(self._uses.popitem(last=False)[1])
        return before

    def rest(self) -> Iterable[_Use]:
        return self._uses.values()


def count_uses(
    calls: Iterable[Call], horizons: Callable[[str], Sequence[float]]
) -> Mapping[str, TierUses]:
    """Go through a log, by tier.

    Args:
        calls: in the order in which they began.
        horizons: the times to live to compare for a tier, in seconds.
    """
    counting = _Counting(horizons)
    for call in calls:
        counting.add(call)
    counting.close()
    return counting.tiers


class _Counting:
    def __init__(self, horizons: Callable[[str], Sequence[float]]) -> None:
        self.tiers: dict[str, TierUses] = {}
        self._horizons = horizons
        self._recent: dict[Piece, _Recent] = {
            "shared": _Recent(lambda use: self._gone("shared", use)),
            "conversation": _Recent(lambda use: self._gone("conversation", use)),
        }
        self._end = 0.0

    def add(self, call: Call) -> None:
        tier = self.tiers.get(call.tier)
        if tier is None:
            compared = {seconds: Kept() for seconds in self._horizons(call.tier)}
            tier = self.tiers[call.tier] = TierUses(kept=compared)
        if (prompt := call.prompt_tokens) is None:
            tier.unreported += 1
            return
        tier.calls += 1
        tier.prompt_tokens += prompt
        self._end = max(self._end, call.began)
        stable = _stable(call)
        shared = self._recent["shared"].swap(_kind(call), _Use(call.began, stable, call.tier))
        own = self._conversation(call, prompt)
        if own and (waited := _tools_took(own, call)) is not None:
            tier.tools.add(waited)
        private = max(0, min(own.tokens, prompt) - stable) if own else 0
        gaps = [call.began - use.at if use else math.inf for use in (shared, own)]
        for seconds, kept in tier.kept.items():
            warm, known = (gap <= seconds for gap in gaps)
            read = stable * warm + private * known
            kept.read += read
            kept.written += prompt - read
            lost = private * (not known) + stable * (not warm)
            if shared:
                kept.waits["shared"].add(_pings(gaps[0], seconds), stable, stable)
            if own:
                kept.waits["conversation"].add(_pings(gaps[1], seconds), stable + private, lost)

    def close(self) -> None:
        """What was not used again by the end of the log, and is past its time, has gone."""
        for piece, recent in self._recent.items():
            for use in recent.rest():
                self._gone(piece, use)

    def _conversation(self, call: Call, prompt: int) -> _Use | None:
        if not call.session:
            return None
        until = call.ended if call.asks_tools else None
        use = _Use(call.began, prompt, call.tier, call.request_id, until)
        # A side call, with other tools or another system prompt, is a conversation of its own.
        return self._recent["conversation"].swap((*_kind(call), call.session), use)

    def _gone(self, piece: Piece, use: _Use) -> None:
        for seconds, kept in self.tiers[use.tier].kept.items():
            if self._end - use.at > seconds:
                kept.waits[piece].never += use.tokens


def _tools_took(before: _Use, call: Call) -> float | None:
    """Seconds from a call of tools to the request with their results; None when it is not that.

    Calls of one request, such as samples and retries, are not each other's results, nor is what
    began before the answer had ended.
    """
    if before.asks_tools_until is None or before.request_id == call.request_id:
        return None
    waited = call.began - before.asks_tools_until
    return waited if waited >= 0 else None


def _pings(gap: float, seconds: float) -> float:
    """Pings that a gap needs when each comes just before the entry would expire."""
    return math.ceil(gap / seconds) - 1 if math.isfinite(gap) else math.inf


def _stable(call: Call) -> int:
    """Reported tokens of tools and system prompt: their share of the segments' estimates."""
    prompt, real = call.prompt, call.prompt_tokens
    if prompt is None or not prompt.tokens or real is None:
        return 0
    return prompt.shared_tokens * real // prompt.tokens


def _kind(call: Call) -> tuple[str, ...]:
    segments = call.prompt.segments if call.prompt else {}
    raws = (segments[name].raw if name in segments else "" for name in ("tools", "system"))
    return (call.tenant, call.tier, *raws)
