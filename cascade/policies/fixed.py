"""Always one tier, its answer taken unseen: a baseline, and what pinning a tier means."""

from collections.abc import Mapping, Sequence

from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Quote, Step


class FixedPolicy:
    """Asks one tier, and the fallbacks in order when it fails or cannot serve the request.

    The answer of a fallback is called degraded.
    """

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
        del request, beliefs
        steps = [step for step in self.steps if step.tier in quotes]
        calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
        if calls and calls[-1].answered:
            return self._accept(calls[-1], fits=self._tiers[0] in quotes)
        rest = steps[len(calls) :]
        reason = f"{calls[-1].step.tier} failed" if calls else f"always {self._tiers[0]}"
        return Plan(steps=rest, reason=reason if rest else f"{reason}; no tier is left to ask")

    def _accept(self, call: Attempt, *, fits: bool) -> Plan:
        first, tier = self._tiers[0], call.step.tier
        if tier == first:
            return Plan(reason=f"always {first}", accept=call.index)
        why = "which failed" if fits else "which cannot serve this request"
        reason = f"{tier} stands in for {first}, {why}"
        return Plan(reason=reason, accept=call.index, degraded=True)
