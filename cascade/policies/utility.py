"""Spends a call where it is worth its price: quality times what quality is worth, less dollars.

q(t) is the probability that tier t's answer is acceptable, c(t) the price of asking it: its bill,
less what warming its cache is worth to later calls, and a price for waiting. With lambda dollars
for a unit of quality, the call that is worth most is made, as long as it is worth more than the
best answer in hand (`outlook` says how that is reckoned).

So a small model is asked first only where its judge may spare the large one, a hopeless request
goes straight up, and knowing that an answer is bad is not yet a reason to ask a tier that will fail
too. Cost weighs and never vetoes: there is no price above which a call is ruled out, and an answer
that its judge rejects is followed by a better tier however cold that is, if the uplift is worth it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cascade.errors import ConfigError
from cascade.policies.outlook import Candidate, Choice, Outlook
from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Step

Unsure = frozenset({"out_of_domain", "fallback"})
"""Flags of beliefs that say no more than what is believed of any request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A tier that may be asked, and who judges its answer if anybody does."""

    tier: str
    judge: str | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The calls it stands for: an answer may also be taken unseen, where that is worth more."""
        unseen = Step(tier=self.tier)
        return (unseen,) if self.judge is None else (Step(tier=self.tier, judge=self.judge), unseen)


class UtilityPolicy:
    """Makes the call that is worth most, as long as there is one.

    Args:
        name: how the audit log calls it.
        tiers: those it may ask, each {tier, judge}, in any order.
        quality_usd: lambda, the dollars that one unit of quality is worth: an answer that is surely
            acceptable instead of one that surely is not.
        second_usd: what a second of waiting costs.
        judge_gain: quality that a judge must be expected to add before an answer is held for it.
        come_down: share of the price of staying that going to a lesser tier must save, so that a
            conversation does not flap.
        consistency: "session" stays with the tier that answered the conversation's last turn.
        when_unsure: tier to begin with when nothing is known of a request beforehand; None: as if
            it were known.
    """

    def __init__(
        self,
        *,
        name: str,
        tiers: Sequence[Option | Mapping[str, Any]],
        quality_usd: float,
        second_usd: float = 0.0,
        judge_gain: float = 0.002,
        come_down: float = 0.05,
        consistency: Literal["turn", "session"] = "turn",
        when_unsure: str | None = None,
    ) -> None:
        self.name = name
        self._options = _options(tiers)
        self._quality_usd, self._second_usd = quality_usd, second_usd
        self._judge_gain, self._come_down = judge_gain, come_down
        self._stays, self._safe = consistency == "session", when_unsure
        if quality_usd <= 0.0:
            raise ConfigError("quality that is worth nothing needs no model", param="quality_usd")
        for field in ("second_usd", "judge_gain", "come_down"):
            if locals()[field] < 0.0:
                raise ConfigError("it is at least 0", param=field)
        if when_unsure is not None and when_unsure not in self._options:
            there = ", ".join(self._options)
            raise ConfigError(f"{when_unsure!r} is none of its tiers: {there}", param="when_unsure")
        self.steps: Sequence[Step] = [s for o in self._options.values() for s in o.steps]

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """The call that is worth most, or the best answer in hand when that is worth more."""
        calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
        asked = {call.step.tier for call in calls}
        left = [name for name in self._options if name in quotes and name not in asked]
        if not calls and (tier := self._bound(request, beliefs, left)):
            left = [tier]
        answers = {c.index: q for c in calls if (q := _quality(c, beliefs)) is not None}
        best = max(answers.values(), default=0.0)
        choices = self._choices(left, beliefs, quotes, best)
        choice = self._best(choices)
        if calls:
            plan = self._go_on(request, calls, answers, choice)
        else:
            plan = self._begin(request, choices, choice)
        return replace(plan, leads=_leads(choices, self._quality_usd * best))

    def _bound(self, request: ChatRequest, beliefs: Beliefs, left: Sequence[str]) -> str | None:
        """The tier that the turn has to begin with, if it is not free to choose.

        A conversation does not change its tier between a tool's call and its result, and a request
        of which nothing is known begins where the configuration says.
        """
        at = request.served_by
        if at in left and (self._stays or _in_tool_loop(request)):
            return at
        return self._safe if beliefs.flags & Unsure and self._safe in left else None

    def _choices(
        self, left: Iterable[str], beliefs: Beliefs, quotes: Mapping[str, Quote], best: float
    ) -> list[Choice]:
        """What may be called next; tiers of unknown price only where no price is known."""
        candidates, unpriced = [], []
        for name in left:
            quote, judge = quotes[name], self._options[name].judge
            mean = beliefs.mean.get(name, 0.0)
            waiting = self._second_usd * (quote.seconds or 0.0)
            judging = None if judge is None else float(quote.judge_dollars)
            if quote.price is None:
                unpriced.append(Candidate(name, mean, waiting, judging))
            else:
                candidates.append(Candidate(name, mean, quote.price + waiting, judging))
        return Outlook(candidates or unpriced, beliefs, self._quality_usd).choices(best)

    def _best(self, choices: Sequence[Choice]) -> Choice | None:
        """The choice that is worth most; an answer is held for a judge only where that adds."""
        hold = self._quality_usd * self._judge_gain
        return max(choices, key=lambda c: c.worth - (hold if c.judged else 0.0), default=None)

    def _begin(self, request: ChatRequest, choices: Sequence[Choice], best: Choice | None) -> Plan:
        if best is None:
            return Plan(reason="no tier is left to ask")
        here = [c for c in choices if c.candidate.tier == request.served_by]
        stay = self._best(here)
        if stay is None or best.candidate.mean >= stay.candidate.mean:
            return self._call(best, "")
        margin = self._come_down * max(0.0, stay.candidate.price)
        if best.worth - stay.worth > margin:
            return self._call(best, f"comes down from {request.served_by}")
        return self._call(stay, f"stays: {best.candidate.tier} would not save enough")

    def _go_on(
        self,
        request: ChatRequest,
        calls: Sequence[Attempt],
        answers: Mapping[int, float],
        choice: Choice | None,
    ) -> Plan:
        wanted = (request.budget.quality if request.budget else None) or 0.0
        best = max(answers.values(), default=0.0)
        needed = None if choice is None else choice.worth / self._quality_usd
        last = calls[-1]
        said = _told(last)
        threshold = None
        if last.verdict is not None:
            threshold = min(1.0, max(wanted, needed or 0.0))
        if last.answered and last.step.judge is None:
            return Plan(reason=said, accept=last.index)
        if choice is not None and (not answers or best < max(wanted, needed or 0.0)):
            plan = self._call(choice, said)
            return Plan(steps=plan.steps, reason=plan.reason, threshold=threshold)
        if answers:
            accept = max(answers, key=lambda i: (answers[i], i))
            more = "nothing more is worth its price" if choice else "no tier is left to ask"
            return Plan(
                reason=f"{said}; {more}",
                threshold=threshold,
                accept=accept,
                degraded=best < wanted,
            )
        return _last_resort(calls, said, threshold)

    def _call(self, choice: Choice, why: str) -> Plan:
        one = choice.candidate
        judge = self._options[one.tier].judge if choice.judged else None
        reason = (
            f"{one.tier} is expected right {one.mean:.3f} for ${one.price:.6f}, worth "
            f"${choice.worth:.6f} {'judged' if judge else 'unseen'}"
        )
        return Plan(
            steps=[Step(tier=one.tier, judge=judge)], reason=f"{why}; {reason}" if why else reason
        )


def _leads(choices: Sequence[Choice], stopping: float) -> dict[str, float]:
    """By how many dollars each tier leads what else could be done."""
    worth: dict[str, float] = {}
    for choice in choices:
        tier = choice.candidate.tier
        worth[tier] = max(choice.worth, worth.get(tier, choice.worth))
    return {
        tier: mine - max([w for t, w in worth.items() if t != tier] + [stopping])
        for tier, mine in worth.items()
    }


def _quality(call: Attempt, beliefs: Beliefs) -> float | None:
    """What is believed of an answer in hand; None where there is none, or its judge did not say."""
    if not call.answered or (call.step.judge is not None and not _scored(call)):
        return None
    return beliefs.mean.get(call.step.tier, 0.0)


def _scored(call: Attempt) -> bool:
    return call.verdict is not None and call.verdict.score is not None


def _told(call: Attempt) -> str:
    """What came of a call, as the beginning of a reason."""
    tier, judge = call.step.tier, call.step.judge
    if not call.answered:
        return f"{tier} failed"
    if judge is None:
        return f"{tier}'s answer is taken unseen"
    if call.verdict is None:
        return f"{judge} failed on {tier}'s answer"
    if call.verdict.score is None:
        return f"{judge} cannot tell about {tier}'s answer"
    return f"{judge} gives {tier}'s answer {call.verdict.score:.3f}"


def _last_resort(calls: Sequence[Attempt], said: str, threshold: float | None) -> Plan:
    """An answer that no judge spoke on is better than none."""
    answered = [call.index for call in calls if call.answered]
    if not answered:
        return Plan(reason=f"{said}; no tier is left to ask", threshold=threshold)
    return Plan(
        reason=f"{said}; no tier is left to ask, so an answer that was not judged is taken",
        threshold=threshold,
        accept=answered[-1],
        degraded=True,
    )


def _in_tool_loop(request: ChatRequest) -> bool:
    """Whether the model waits for the result of a tool that it called."""
    return bool(request.messages) and request.messages[-1].get("role") == "tool"


def _options(tiers: Sequence[Option | Mapping[str, Any]]) -> dict[str, Option]:
    """The tiers by name, from options or their fields as the configuration gives them."""
    if not tiers:
        raise ConfigError("a policy needs at least one tier", param="tiers")
    found: dict[str, Option] = {}
    for i, given in enumerate(tiers):
        where = f"tiers.{i}"
        option = given if isinstance(given, Option) else _option(given, where)
        if option.tier in found:
            raise ConfigError(f"{option.tier} is there twice", param=where)
        found[option.tier] = option
    return found


def _option(given: Mapping[str, Any], where: str) -> Option:
    if unknown := given.keys() - {"tier", "judge"}:
        raise ConfigError("unknown key", param=f"{where}.{min(unknown)}")
    tier, judge = given.get("tier"), given.get("judge")
    if not isinstance(tier, str) or not isinstance(judge, str | None):
        raise ConfigError("it needs a tier; tier and judge are each a name", param=where)
    return Option(tier=tier, judge=judge)
