"""Says for one call how many prompt tokens were not read that could have been, why, and for what.

A call is held against the prompt that it goes on from. What that had, and it has no more, was
changed; what it still has, and was not read, was gone. Each token is lost to one cause, so that
causes add up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cascade.audit import PICO
from cascade.caches import CacheCard
from cascade.pricing import PriceCard
from serving.doctor.calls import Call
from serving.doctor.causes import Cause
from serving.doctor.memory import Held
from serving.doctor.words import gap

SLACK_TOKENS = 128
"""Fewer lost tokens than this are no miss: caches keep whole blocks, the largest of 128 tokens."""

SLACK_SHARE = 0.02
USUAL_TTL_SECONDS = 300.0
"""After how long an entry may be gone where nobody says: what most providers state."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Tokens of a call that one cause kept from being read.

    Attributes:
        detail: numbers of this case; may be empty.
        before: the earlier call.
        pico: what they cost more than if they had been read; None when that cannot be told.
    """

    cause: Cause
    detail: str
    before: Call
    tokens: int
    pico: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TierFacts:
    """What the configuration says of a tier; None where it does not."""

    cache: CacheCard | None = None
    prices: PriceCard | None = None


def losses(call: Call, held: Sequence[Held], facts: TierFacts, *, ours: bool) -> list[Loss]:
    """What a call lost; empty when it read all it could, or nothing was there to read.

    Args:
        call: whose cached tokens are reported.
        held: earlier calls, the best last.
        facts: of its tier.
        ours: they are of its own session.
    """
    same_tier = [each for each in held if each[0].tier == call.tier]
    own = same_tier[-1] if same_tier else None
    latest = held[-1] if held and ours else own
    if latest is None:
        return []
    slack = max(SLACK_TOKENS, int(SLACK_SHARE * _possible(call, latest)))
    steps = list(_steps(call, own, latest, facts.cache))
    if sum(step.tokens for step in steps) <= slack:
        return []
    largest = max(step.tokens for step in steps)
    return _priced(call, [s for s in steps if s.tokens > min(slack, largest - 1)], facts.prices)


@dataclass(frozen=True, slots=True)
class _Step:
    cause: Cause
    detail: str
    before: Call
    tokens: int


def _steps(call: Call, own: Held | None, latest: Held, card: CacheCard | None) -> Iterator[_Step]:
    """From what could have been read, had nothing happened, down to what was read."""
    read = call.read_tokens or 0
    sent = max(read, *(_possible(call, held) for held in (latest, own) if held))
    seen = max(read, _possible(call, own) if own else 0)
    common = max(read, _common(call, own) if own else 0)
    if sent > seen:
        detail = f"{latest[0].tier} before {call.tier}"
        yield _Step(Cause("between" if own else "first_here"), detail, latest[0], sent - seen)
    if own and own[1].cause and seen > common:
        yield _Step(own[1].cause, own[1].detail, own[0], seen - common)
    if own and common > read:
        yield _Step(*_gone(call, own[0], card), own[0], common - read)


def _gone(call: Call, before: Call, card: CacheCard | None) -> tuple[Cause, str]:
    """Why a prefix that was sent before was not there."""
    since = call.began - before.began
    asked = f"{gap(since)} after the last use"
    ttl = before.kept_seconds or (card.ttl_seconds if card else None)
    if call.began < (before.first_token or before.ended):
        return Cause("together"), f"{gap(max(since, 0.0))} apart"
    if before.replica and call.replica and before.replica != call.replica:
        return Cause("replica"), f"{call.replica} instead of {before.replica}"
    if card and (call.prompt_tokens or 0) < card.minimum_tokens:
        return Cause("too_short"), f"{call.prompt_tokens} tokens of {card.minimum_tokens}"
    if ttl is None and card and card.kind != "ttl":
        return Cause("evicted"), asked
    if since > (ttl or USUAL_TTL_SECONDS):
        usual = "" if ttl else "the usual "
        kept = gap(ttl or USUAL_TTL_SECONDS)
        return Cause("expired"), f"gap of {gap(since)} against a TTL of {usual}{kept}"
    return Cause("evicted"), asked


def _possible(call: Call, held: Held) -> int:
    """Tokens that a call could have read, had nothing changed since the earlier one."""
    before, found = held
    known = before.tier == call.tier and before.prompt_tokens is not None
    if known and (found.goes_on or (found.cause and found.related)):
        return min(before.prompt_tokens or 0, call.prompt_tokens or 0)
    return _scaled(call, found.possible)


def _common(call: Call, held: Held) -> int:
    """Tokens of it that were as before."""
    return _possible(call, held) if held[1].goes_on else _scaled(call, held[1].common)


def _scaled(call: Call, tokens: int) -> int:
    """From tokens as the segments count them to tokens as they were reported."""
    real, about = call.prompt_tokens or 0, call.prompt.tokens if call.prompt else 0
    return min(tokens * real // about, real) if about else 0


def _priced(call: Call, steps: Sequence[_Step], prices: PriceCard | None) -> list[Loss]:
    """The call's dollars shared out by tokens, so that they add up to the pico-dollar."""
    lost = sum(step.tokens for step in steps)
    whole = lost_pico(call, lost, prices)
    found, until = [], 0
    for step in steps:
        since, until = until, until + step.tokens
        share = None if whole is None else whole * until // lost - whole * since // lost
        found.append(Loss(step.cause, step.detail, step.before, step.tokens, share))
    return found


def lost_pico(call: Call, tokens: int, prices: PriceCard | None) -> int | None:
    """What so many tokens cost more than if they had been read.

    Their share of the call's cold premium, where the row has it: premium * lost / (not read).
    Otherwise lost * (rate paid - rate of reading), the first from the row, the second from the row
    or, where nothing was read, from the tier's prices. None where neither is known.
    """
    cold, read = call.cold_tokens, call.read_tokens
    if not cold:
        return None
    if call.paid.premium is not None:
        return call.paid.premium * tokens // cold
    if call.paid.prompt is None:
        return None
    reading = Decimal(call.paid.read) / read if read and call.paid.read is not None else None
    if reading is None and prices and (rate := prices.read_rate(call.prompt_tokens or 0)):
        reading = rate * PICO
    if reading is None:
        return None
    return int((Decimal(call.paid.prompt) / cold - reading) * tokens)
