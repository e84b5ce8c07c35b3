"""Calls and their prompts as the audit log has them, ready to be compared.

Prompts are known by the hashes of their segments alone, so what is said of them holds for texts
that nobody kept. There are as many of these values as there are calls in a log, so they are tuples,
which are made faster than other classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cascade.prefix import Segment

STABLE = ("tools", "system", "pack")
"""What comes before the conversation, in the order in which a model reads it."""


class Prompt(NamedTuple):
    """A prompt's segments by name.

    Attributes:
        stable: hash of each segment before the conversation, in the order of STABLE; "" for none.
        stable_tokens: tokens before the conversation, which others may share.
        turns: hash of each message of the conversation, history and suffix.
        skipped: first messages that are missing in `turns`: of long ones the log keeps the end.
        history: how many messages were there before the new ones, the skipped ones included.
        tokens: how long it is, about.
    """

    segments: Mapping[str, Segment]
    stable: tuple[str, ...]
    stable_tokens: int
    turns: tuple[str, ...]
    skipped: int
    history: int
    tokens: int

    @property
    def messages(self) -> int:
        """How many messages the conversation has."""
        return self.skipped + len(self.turns)

    @property
    def shared_tokens(self) -> int:
        """Tokens of tools and system prompt."""
        pack = self.segments.get("pack")
        return self.stable_tokens - (pack.tokens if pack else 0)

    def tokens_until(self, turn: int) -> int:
        """About how many tokens of the conversation come before that turn."""
        history, suffix = self.segments.get("history"), self.segments.get("suffix")
        old, new = min(turn, self.history), turn - self.history
        found = history.tokens * old // self.history if history and self.history else 0
        if suffix and new > 0:
            found += suffix.tokens * new // (self.messages - self.history)
        return found


class Paid(NamedTuple):
    """What a call cost, in pico-dollars; None where it is not known.

    Attributes:
        prompt: of the prompt tokens that were computed or written.
        read: of those that were read from the cache.
        output: of the answer.
        premium: what it cost more than with its whole prompt warm.
    """

    total: int | None = None
    prompt: int | None = None
    read: int | None = None
    output: int | None = None
    premium: int | None = None


class Call(NamedTuple):
    """One call of a model.

    Attributes:
        began: in seconds since the epoch, as are `first_token` and `ended`.
        first_token: when the answer began; None when none came.
        prompt: None when the row has no segments.
        cold_tokens: prompt tokens that were computed or written; None when not reported.
        read_tokens: prompt tokens that were read from a cache; None when not reported.
        kept_seconds: for how long what it wrote was to be kept; None when it does not say.
        asks_tools: it ended by calling tools.
    """

    request_id: str
    tenant: str
    session: str
    tier: str
    began: float
    ended: float
    first_token: float | None = None
    replica: str | None = None
    prompt: Prompt | None = None
    cold_tokens: int | None = None
    read_tokens: int | None = None
    kept_seconds: float | None = None
    asks_tools: bool = False
    paid: Paid = Paid()

    @property
    def prompt_tokens(self) -> int | None:
        """All prompt tokens, cached or not."""
        return None if self.cold_tokens is None else self.cold_tokens + (self.read_tokens or 0)


def prompt_of(segments: Sequence[Mapping[str, Any]] | None) -> Prompt | None:
    """A prompt from the row's `segments`; None when there are none."""
    return prompt_from([Segment(**each) for each in segments or ()])


def prompt_from(segments: Sequence[Segment]) -> Prompt | None:
    """A prompt from its segments; None when there are none."""
    if not segments:
        return None
    found: dict[str, Segment] = {each.name: each for each in segments}
    missing, turns = _turns(found.get("history"), found.get("suffix"))
    stable = [found.get(name) for name in STABLE]
    return Prompt(
        segments=found,
        stable=tuple([segment.raw if segment else "" for segment in stable]),
        stable_tokens=sum(segment.tokens for segment in stable if segment),
        turns=turns,
        skipped=missing,
        history=parts_of(found.get("history")),
        tokens=sum(segment.tokens for segment in found.values()),
    )


def parts_of(segment: Segment | None) -> int:
    """How many parts a segment has, those included that the log only counts."""
    if segment is None or not segment.parts:
        return 0
    return _missing(segment) + len(segment.parts) - (_missing(segment) > 0)


def _turns(*segments: Segment | None) -> tuple[int, tuple[str, ...]]:
    """How many messages are missing, and those that follow without a gap."""
    missing = 0
    turns: tuple[str, ...] = ()
    for segment in segments:
        if segment is None:
            continue
        if absent := _missing(segment):
            missing, turns = missing + len(turns) + absent, tuple(segment.parts[1:])
        else:
            turns = (*turns, *segment.parts)
    return missing, turns


def _missing(segment: Segment) -> int:
    """How many first parts are left out: a segment says so as "+744" in their place."""
    first = segment.parts[0] if segment.parts else ""
    return int(first) if first.startswith("+") else 0


def seconds_of(ttl: str) -> float | None:
    """Seconds of a time to live as usage names it ("5m", "1h"); None for other words."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number, unit = ttl[:-1], ttl[-1:]
    return int(number) * units[unit] if number.isdecimal() and unit in units else None
