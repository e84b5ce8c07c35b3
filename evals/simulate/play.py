"""Plays one tenant's turns under one policy: the shipped ledger, quotes, prices and decisions.

What the ledger expects to be warm is what is warm here, so a bill is what its quote said; what it
is worth to know is measured, not how well it can be known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cascade.backends.scripted import ScriptedBackend
from cascade.ledger import Ledger
from cascade.protocols import RoutingPolicy
from cascade.quote import Quote
from cascade.quoting import Expected, quote, wanted
from cascade.tiers import ModelTier
from cascade.traffic import Traffic, Whose
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Choice,
    Completion,
    Kind,
    Step,
    Usage,
    Verdict,
)
from evals.simulate.frontier import Point
from evals.simulate.rivals import View
from evals.simulate.world import OUTPUT_TOKENS, Lineup, Regime, Turn

_ANSWER = Completion(choices=(Choice(text="", finish_reason="stop"),))
_MESSAGES = ({"role": "user", "content": ""},)
_TENANT = "t"


@dataclass(slots=True)
class Outcome:
    """What a policy made of a tenant's turns.

    Attributes:
        dollars: spent.
        quality: acceptable answers expected, summed over turns.
        premium: dollars of it that were spent because a prefix was cold.
        switches: turns that were answered by another tier than the one before.
    """

    turns: int = 0
    dollars: float = 0.0
    quality: float = 0.0
    premium: float = 0.0
    switches: int = 0
    calls: dict[str, int] = field(default_factory=dict)

    def point(self, knob: float) -> Point:
        """The same by turn, as a point of the policy's frontier."""
        return Point(
            knob=knob,
            quality=self.quality / self.turns,
            dollars=self.dollars / self.turns,
            switches=self.switches / self.turns,
            premium=self.premium / self.dollars,
        )


class Player:
    """One tenant's caches, and what is learned of its traffic.

    Args:
        lineup: the tiers.
        regime: of the traffic.
    """

    def __init__(self, lineup: Lineup, regime: Regime) -> None:
        self._now = 0.0
        self._regime = regime
        self.traffic = Traffic(clock=self._clock)
        self._ledger = Ledger(lineup.caches, clock=self._clock)
        self._timed = {name: cache.kind == "ttl" for name, cache in lineup.caches.items()}
        self._tiers = {
            name: ModelTier(
                name=name, backend=ScriptedBackend(), prices=card, cache=lineup.caches[name]
            )
            for name, card in lineup.cards.items()
        }

    def _clock(self) -> float:
        return self._now

    def play(
        self, turns: Sequence[Turn], policy: RoutingPolicy, view: View, *, counted: int = 0
    ) -> Outcome:
        """What becomes of the turns; those before `counted` are played and not counted."""
        outcome = Outcome()
        for place, turn in enumerate(turns):
            self._now = turn.at
            into = outcome if place >= counted else Outcome()
            self._turn(turn, policy, view, into)
        return outcome

    def _turn(self, turn: Turn, policy: RoutingPolicy, view: View, outcome: Outcome) -> None:
        session = str(turn.conversation)
        whose = Whose(_TENANT, session, "stable")
        self.traffic.began(whose)
        before = self.traffic.served_by(_TENANT, session)
        request = ChatRequest(
            id="r", messages=_MESSAGES, tenant=_TENANT, session=session, served_by=before
        )
        quotes = _Quotes(self._tiers, lambda tier: self._quote(tier, turn, whose))
        seen = _Quotes(self._tiers, lambda tier: view(quotes[tier.name]))
        attempts, accepted, leads = _climb(turn, policy, request, seen)
        called = [each.step.tier for each in attempts]
        for bill in [quotes[tier] for tier in called]:  # all of what is warm before they are made
            _pay(bill, outcome)
        for tier in called:
            self._ledger.began(tier, turn.chain)
            # An API keeps what it was asked; a server of one's own what it answered, too.
            timed = self._timed[tier]
            self._ledger.ended(tier, turn.chain if timed else turn.whole)
        answered = called[accepted]
        wants = {name: 1.0 if name in called else 0.0 for name in self._tiers}
        wants |= {name: wanted(seen[name], lead) for name, lead in leads.items()}
        self.traffic.ended(whose, wants, answered)
        outcome.turns += 1
        outcome.quality += turn.question.quality[answered]
        outcome.switches += bool(before) and before != answered

    def _quote(self, tier: ModelTier, turn: Turn, whose: Whose) -> Quote:
        name = tier.name
        expected = Expected(
            prompt=turn.prompt,
            stable=self._regime.prefix,
            output=OUTPUT_TOKENS,
            warm=self._ledger.warm(name, turn.chain),
            shared_age=self._ledger.age_seconds(name, turn.chain.first(self._regime.prefix)),
            lifetime=self._ledger.residence_seconds(name),
            minimum=tier.cache.minimum_tokens if tier.cache else 0,
        )
        return quote(tier, expected, self.traffic, whose)


class _Quotes(Mapping[str, Quote]):
    """Quotes by tier, made when a policy first looks at them: most policies never do."""

    def __init__(
        self, tiers: Mapping[str, ModelTier], quoted: Callable[[ModelTier], Quote]
    ) -> None:
        self._tiers, self._quoted, self._known = tiers, quoted, dict[str, Quote]()

    def __getitem__(self, tier: str) -> Quote:
        if tier not in self._known:
            self._known[tier] = self._quoted(self._tiers[tier])
        return self._known[tier]

    def __contains__(self, tier: object) -> bool:
        return tier in self._tiers

    def __iter__(self) -> Iterator[str]:
        return iter(self._tiers)

    def __len__(self) -> int:
        return len(self._tiers)


def _pay(quoted: Quote, outcome: Outcome) -> None:
    if quoted.dollars is None:
        raise AssertionError("every simulated tier has its prices")
    outcome.dollars += float(quoted.dollars)
    outcome.premium += float(quoted.cold_premium or 0)
    outcome.calls[quoted.tier] = outcome.calls.get(quoted.tier, 0) + 1


def _climb(
    turn: Turn, policy: RoutingPolicy, request: ChatRequest, quotes: Mapping[str, Quote]
) -> tuple[list[Attempt], int, dict[str, float]]:
    """The attempts that a policy makes, which of them it takes, and how its tiers led."""
    question, attempts = turn.question, list[Attempt]()
    beliefs, judged, leads = question.beliefs, frozenset[str](), dict[str, float]()
    while True:
        plan = policy.decide(request, beliefs, quotes, attempts)
        for tier, lead in plan.leads.items():
            leads[tier] = max(lead, leads.get(tier, lead))
        if not plan.steps:
            if plan.accept is None:
                raise AssertionError(f"{policy.name} takes no answer: {plan.reason}")
            return attempts, plan.accept, leads
        step = plan.steps[0]
        verdict = None
        if step.judge is not None:
            judged |= {step.tier}
            beliefs = Beliefs(mean=question.after(judged), covariance=beliefs.covariance)
            verdict = Verdict(judge=step.judge, score=beliefs.mean[step.tier])
        attempts.append(_attempt(len(attempts), step, verdict))


def _attempt(index: int, step: Step, verdict: Verdict | None) -> Attempt:
    return Attempt(index=index, kind=Kind.ANSWER, step=step, completion=_ANSWER, verdict=verdict)


def mean_list_prices(lineup: Lineup, turns: Sequence[Turn]) -> dict[str, Decimal]:
    """What a call to each tier costs in the mean at list price."""
    tokens = sum(turn.prompt for turn in turns) // len(turns)
    return {name: list_price_of(lineup, name, tokens) for name in lineup.cards}


def list_price_of(lineup: Lineup, tier: str, prompt: int) -> Decimal:
    """What a call costs when nothing is warm and nothing is written."""
    cost = lineup.cards[tier].price(Usage(input=prompt, cache_read=0, output=OUTPUT_TOKENS))
    if cost is None:
        raise AssertionError("every simulated tier has its prices")
    return cost.total
