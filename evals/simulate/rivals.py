"""The policies that ours is held against, and the quotes that the blind ones decide with.

All are played by the same player over the same caches at the same prices; only what they know and
how they choose differs. Each has one knob, which is swept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from cascade.policies.fixed import FixedPolicy
from cascade.policies.utility import Option, UtilityPolicy
from cascade.protocols import RoutingPolicy
from cascade.quote import NOTHING, Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Plan, Step

JUDGE = "judge"
View = Callable[[Quote], Quote]


def as_quoted(quote: Quote) -> Quote:
    """Ours: what is warm, less what warming is worth."""
    return quote


def exact(quote: Quote) -> Quote:
    """What is warm, and nothing for warming: each conversation by itself."""
    return replace(quote, shared=NOTHING)


def list_price(list_prices: Callable[[Quote], Decimal]) -> View:
    """As if nothing were ever warm."""
    return lambda quote: replace(quote, dollars=list_prices(quote), shared=NOTHING)


def all_warm(quote: Quote) -> Quote:
    """As if everything were always warm."""
    if quote.dollars is None or quote.cold_premium is None:
        return quote
    return replace(quote, dollars=quote.dollars - quote.cold_premium, shared=NOTHING)


def flat(dollars: Mapping[str, Decimal]) -> View:
    """What a call to the tier costs in the mean, whatever the prompt."""
    return lambda quote: replace(quote, dollars=dollars[quote.tier], shared=NOTHING)


class ThresholdPolicy:
    """The smallest tier that is believed to reach a threshold, before the call and after it.

    Args:
        name: of the policy.
        tiers: from the smallest.
        at: the threshold.
        judged: climb by the judge's word; otherwise the choice before the call stands.
        start: "smallest", "believed" (the smallest that reaches the threshold), "last" (the tier
            that answered the conversation's last turn) or "first" (the tier that was chosen by
            belief for its first turn).
    """

    def __init__(
        self, *, name: str, tiers: Sequence[str], at: float, judged: bool, start: str
    ) -> None:
        self.name = name
        self._tiers, self._at, self._judged, self._start = tiers, at, judged, start
        judge = JUDGE if judged else None
        self.steps: Sequence[Step] = [Step(tier=tier, judge=judge) for tier in tiers]

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """The next tier up, until one reaches the threshold."""
        del quotes
        last = self._tiers[-1]
        if not attempts:
            tier = self._first(request, beliefs)
            return Plan(steps=[Step(tier=tier, judge=JUDGE if self._judged else None)])
        current = attempts[-1].step.tier
        if not self._judged or current == last or beliefs.mean[current] >= self._at:
            return Plan(accept=attempts[-1].index)
        return Plan(steps=[Step(tier=self._tiers[self._tiers.index(current) + 1], judge=JUDGE)])

    def _first(self, request: ChatRequest, beliefs: Beliefs) -> str:
        if self._start == "smallest":
            return self._tiers[0]
        if self._start in {"last", "first"} and request.served_by:
            return request.served_by
        if self._start == "last":
            return self._tiers[0]
        return next((t for t in self._tiers if beliefs.mean[t] >= self._at), self._tiers[-1])


class MixPolicy:
    """Two neighbouring tiers at random, by conversation: what lies between two fixed ones."""

    def __init__(self, *, name: str, tiers: Sequence[str], share: float) -> None:
        self.name, self._tiers, self._share = name, tiers, share
        self.steps: Sequence[Step] = [Step(tier=tier) for tier in tiers]

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """The tier that the conversation's number draws, then its answer."""
        del beliefs, quotes
        if attempts:
            return Plan(accept=attempts[-1].index)
        draw = (int(request.session) * 0.6180339887498949) % 1.0
        place = min(len(self._tiers) - 1, int(self._share * (len(self._tiers) - 1) + draw))
        return Plan(steps=[Step(tier=self._tiers[place])])


THRESHOLDS = (0.3, 0.4, 0.5, 0.58, 0.66, 0.74, 0.8, 0.86, 0.91, 0.95)
SHARES = (0.0, 0.12, 0.25, 0.37, 0.5, 0.62, 0.75, 0.87, 0.95, 1.0)

Made = Callable[[Sequence[str], float], RoutingPolicy]


def _threshold(name: str, *, judged: bool, start: str) -> Made:
    return lambda tiers, knob: ThresholdPolicy(
        name=name, tiers=tiers, at=knob, judged=judged, start=start
    )


def fixed(tiers: Sequence[str], knob: float) -> RoutingPolicy:
    """Always the tier of that place."""
    return FixedPolicy(name="fixed", tier=tiers[int(knob)])


def utility(tiers: Sequence[str], knob: float) -> RoutingPolicy:
    """The shipped policy; the knob is what quality is worth."""
    options = [Option(tier=tier, judge=JUDGE) for tier in tiers]
    return UtilityPolicy(name="utility", tiers=options, quality_usd=knob)


WITHOUT_UTILITY: Mapping[str, tuple[Made, Sequence[float]]] = {
    "mix": (lambda tiers, knob: MixPolicy(name="mix", tiers=tiers, share=knob), SHARES),
    "pin": (_threshold("pin", judged=False, start="first"), THRESHOLDS),
    "router": (_threshold("router", judged=False, start="believed"), THRESHOLDS),
    "cascade": (_threshold("cascade", judged=True, start="smallest"), THRESHOLDS),
    "router+cascade": (_threshold("router+cascade", judged=True, start="believed"), THRESHOLDS),
    "sticky cascade": (_threshold("sticky cascade", judged=True, start="last"), THRESHOLDS),
}
"""Policies and their knobs."""
