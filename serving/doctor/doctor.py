"""Goes through the log once and adds up what was lost, by cause, and how warm each tier was.

It keeps sums and a bounded memory of prompts, so that a long log takes time and no space.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from operator import attrgetter

from cascade.audit import PICO
from serving.doctor.calls import Call
from serving.doctor.causes import Cause
from serving.doctor.losses import Loss, TierFacts, losses
from serving.doctor.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause, and what it cost.

    Attributes:
        said: what happened, with the numbers of the example.
        calls: that lost tokens to it.
        dollars: of the calls whose prices are known.
        unpriced: calls of which they are not.
        before: request that the example goes back to.
        after: the example: the request that lost the most.
    """

    cause: Cause
    said: str
    tiers: tuple[str, ...]
    calls: int
    tokens: int
    dollars: Decimal
    unpriced: int
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierWarmth:
    """How warm the prompts of a tier were. Shares are None where there is nothing to divide.

    Attributes:
        calls: all of them.
        unreported: calls whose cached tokens nobody reported; they are in no other number.
        unknown: calls without segments, of which no cause can be told.
        first: calls that nothing was sent before from which they could have read.
        missed: calls that lost tokens.
        prompt_tokens: of the calls that are reported, as are the following.
        read_tokens: of them read from the cache.
        lost_tokens: of them not read that could have been.
        by_request: mean of each request's share that was read.
        dollars: of the calls whose cost is known.
        output_dollars: of these for the answer, which no cache can save.
    """

    tier: str
    calls: int
    unreported: int
    unknown: int
    first: int
    missed: int
    prompt_tokens: int
    read_tokens: int
    lost_tokens: int
    by_request: float | None
    dollars: Decimal
    output_dollars: Decimal

    @property
    def by_token(self) -> float | None:
        """Share of the prompt tokens that was read."""
        return self.read_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def possible(self) -> float | None:
        """Share that could have been read, had nothing been lost."""
        if not self.prompt_tokens:
            return None
        return (self.read_tokens + self.lost_tokens) / self.prompt_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What the log says, dearest findings first."""

    tiers: tuple[TierWarmth, ...]
    findings: tuple[Finding, ...]

    @property
    def calls(self) -> int:
        """All that were looked at."""
        return sum(tier.calls for tier in self.tiers)

    @property
    def dollars(self) -> Decimal:
        """What was lost, as far as prices are known: the findings' sum."""
        return sum((each.dollars for each in self.findings), Decimal(0))

    @property
    def tokens(self) -> int:
        """Tokens that were lost."""
        return sum(each.tokens for each in self.findings)

    @property
    def spent(self) -> Decimal:
        """What all calls cost, as far as that is known."""
        return sum((tier.dollars for tier in self.tiers), Decimal(0))

    @property
    def output_share(self) -> float | None:
        """Share of the spend that went for answers."""
        output = sum((tier.output_dollars for tier in self.tiers), Decimal(0))
        return float(output / self.spent) if self.spent else None


def diagnose(
    calls: Iterable[Call],
    facts: Mapping[str, TierFacts] | None = None,
    memory: Memory | None = None,
) -> Diagnosis:
    """Explain a log.

    Args:
        calls: in the order in which they began.
        facts: what the configuration says, by tier; tiers of the log may be missing.
        memory: of earlier prompts; by default as large as is needed for most logs.
    """
    known, memory = facts or {}, memory or Memory()
    tiers: dict[str, _Tier] = {}
    causes: dict[Cause, _Sum] = {}
    for _, made in groupby(calls, key=attrgetter("request_id")):
        # All that a request asked had the same prompt: it is held against earlier requests.
        seen = [(call, *memory.earlier(call)) for call in made]
        for call, held, ours in seen:
            tier = tiers.setdefault(call.tier, _Tier())
            tier.add(call)
            if call.prompt and call.prompt_tokens is not None and call.read_tokens is not None:
                lost = losses(call, held, known.get(call.tier, TierFacts()), ours=ours)
                tier.compare(lost, first=not held)
                for loss in lost:
                    causes.setdefault(loss.cause, _Sum()).add(call, loss)
            memory.keep(call, held)
    findings = [total.finding(cause) for cause, total in causes.items()]
    findings.sort(key=lambda each: (-each.dollars, -each.tokens, each.cause.key))
    warmth = [tier.warmth(name) for name, tier in sorted(tiers.items())]
    return Diagnosis(tiers=tuple(warmth), findings=tuple(findings))


@dataclass(slots=True)
class _Sum:
    """What one cause has cost so far."""

    calls: int = 0
    tokens: int = 0
    pico: int = 0
    unpriced: int = 0
    tiers: set[str] = field(default_factory=set)
    worst: tuple[float, int] = (-math.inf, 0)
    example: tuple[str, str, str] = ("", "", "")

    def add(self, call: Call, loss: Loss) -> None:
        self.calls += 1
        self.tokens += loss.tokens
        self.pico += loss.pico or 0
        self.unpriced += loss.pico is None
        self.tiers.add(call.tier)
        size = (loss.pico or 0, loss.tokens)
        if size > self.worst:
            self.worst = size
            self.example = (loss.before.request_id, call.request_id, loss.detail)

    def finding(self, cause: Cause) -> Finding:
        before, after, detail = self.example
        return Finding(
            cause=cause,
            said=cause.told(detail),
            tiers=tuple(sorted(self.tiers)),
            calls=self.calls,
            tokens=self.tokens,
            dollars=Decimal(self.pico) / PICO,
            unpriced=self.unpriced,
            before=before,
            after=after,
        )


@dataclass(slots=True)
class _Tier:
    """What the calls of a tier have come to so far."""

    calls: int = 0
    unreported: int = 0
    unknown: int = 0
    first: int = 0
    missed: int = 0
    reported: int = 0
    prompt: int = 0
    read: int = 0
    lost: int = 0
    shares: float = 0.0
    pico: int = 0
    output: int = 0

    def add(self, call: Call) -> None:
        self.calls += 1
        if call.paid.total is not None and call.paid.output is not None:
            self.pico += call.paid.total
            self.output += call.paid.output
        if call.prompt_tokens is None or call.read_tokens is None:
            self.unreported += 1
            return
        self.unknown += call.prompt is None
        self.prompt += call.prompt_tokens
        self.read += call.read_tokens
        if call.prompt_tokens:
            self.reported += 1
            self.shares += call.read_tokens / call.prompt_tokens

    def compare(self, lost: Iterable[Loss], *, first: bool) -> None:
        tokens = sum(loss.tokens for loss in lost)
        self.first += first
        self.missed += tokens > 0
        self.lost += tokens

    def warmth(self, name: str) -> TierWarmth:
        return TierWarmth(
            tier=name,
            calls=self.calls,
            unreported=self.unreported,
            unknown=self.unknown,
            first=self.first,
            missed=self.missed,
            prompt_tokens=self.prompt,
            read_tokens=self.read,
            lost_tokens=self.lost,
            by_request=self.shares / self.reported if self.reported else None,
            dollars=Decimal(self.pico) / PICO,
            output_dollars=Decimal(self.output) / PICO,
        )
