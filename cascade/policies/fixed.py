"""Always one tier, its answer taken unseen: a baseline, and what pinning a tier means."""

from collections.abc import Mapping, Sequence
from typing import Final

from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Step


class FixedPolicy:
    """Asks one tier, and the fallbacks in order when it fails or cannot serve the request.

    The answer of a fallback is called degraded.
    """

    heedless: Final = True
    """It looks at no beliefs."""

    def __init__(self, *, name: str, tier: str, fallback: Sequence[str] = ()) -> None:
        self.name = name
        self._tiers = (tier, *fallback)
        self.steps: Sequence[Step] = tuple(Step(tier=each) for each in self._tiers)

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """The next tier until one answers."""
        del beliefs
        calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
        if calls and calls[-1].answered:
            return self._accept(calls, request)
        asked = {call.step.tier for call in calls}
        rest = [step for step in self.steps if step.tier in quotes and step.tier not in asked]
        reason = f"{calls[-1].step.tier} failed" if calls else f"always {self._tiers[0]}"
        return Plan(steps=rest, reason=reason if rest else f"{reason}; no tier is left to ask")

    def _accept(self, calls: Sequence[Attempt], request: ChatRequest) -> Plan:
        first, tier, taken = self._tiers[0], calls[-1].step.tier, calls[-1].index
        unjudged = ""
        if request.budget is not None and request.budget.quality is not None:
            unjudged = f"; nothing judged it against the quality {request.budget.quality:g} wanted"
        if tier == first:
            return Plan(reason=f"always {first}{unjudged}", accept=taken)
        why = "which failed" if calls[0].step.tier == first else "which may not be asked"
        reason = f"{tier} stands in for {first}, {why}{unjudged}"
        return Plan(reason=reason, accept=taken, degraded=True)
