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

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from cascade.errors import ConfigError
from cascade.policies.ladder import UNSURE
from cascade.policies.outlook import Candidate, Choice, Outlook
from cascade.policies.reasons import at_its_word, score_of, told, usd
from cascade.posterior import PRIOR
from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Step

_RESULTS: Final = frozenset({"tool", "function"})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What is known when the policy is asked.

    Attributes:
        wanted: probability below which the client calls an answer too little.
        quotes: of the tiers that may be asked.
        calls: for an answer, so far.
        answers: what is believed of those in hand, by index.
        choices: the calls that may be made next.
        missed: what is believed of the best tier that may not be asked; 0 without one.
    """

    wanted: float
    quotes: Mapping[str, Quote]
    calls: Sequence[Attempt]
    answers: Mapping[int, float]
    choices: Sequence[Choice]
    missed: float

    @property
    def best(self) -> float:
        """What is believed of the best answer in hand; 0 without one."""
        return max(self.answers.values(), default=0.0)


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

    weighs_dollars: Final = True
    """Its tiers need prices."""

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
        if not 0.0 < quality_usd < math.inf:
            raise ConfigError("it is a finite number of dollars above 0", param="quality_usd")
        for field in ("second_usd", "judge_gain", "come_down"):
            if not 0.0 <= locals()[field] < math.inf:
                raise ConfigError("it is a finite number from 0", param=field)
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
        open_ = [name for name in self._options if name not in asked]
        left = [name for name in open_ if name in quotes]
        answers = {c.index: q for c in calls if (q := _quality(c, beliefs)) is not None}
        outlook = Outlook(self._candidates(left, beliefs, quotes), beliefs, self._quality_usd)
        turn = _Turn(
            wanted=(request.budget.quality if request.budget else None) or 0.0,
            quotes=quotes,
            calls=calls,
            answers=answers,
            choices=outlook.choices(max(answers.values(), default=0.0)),
            missed=max([_believed(beliefs, t) for t in open_ if t not in quotes], default=0.0),
        )
        plan = self._go_on(turn) if calls else self._begin(request, beliefs, turn)
        return replace(plan, leads=_leads(turn.choices, self._quality_usd * turn.best))

    def _candidates(
        self, left: Iterable[str], beliefs: Beliefs, quotes: Mapping[str, Quote]
    ) -> list[Candidate]:
        """What may be called next; tiers of unknown price only where no price is known."""
        candidates, unpriced = [], []
        for name in left:
            quote, judge = quotes[name], self._options[name].judge
            mean = _believed(beliefs, name)
            waiting = self._second_usd * (quote.seconds or 0.0)
            judging = None if judge is None else self._judging(quote)
            if quote.price is None:
                unpriced.append(Candidate(name, mean, waiting, judging))
            else:
                # Warming may be worth more than the call costs; nobody is asked for that alone.
                price = max(0.0, quote.price) + waiting
                candidates.append(Candidate(name, mean, price, judging))
        return candidates or unpriced

    def _judging(self, quote: Quote) -> float:
        """What it costs to judge an answer, and to wait for that."""
        return float(quote.judge_dollars) + self._second_usd * quote.judge_seconds

    def _begin(self, request: ChatRequest, beliefs: Beliefs, turn: _Turn) -> Plan:
        tier, why = self._bound(request, beliefs)
        if tier and (bound := self._best(turn, only=tier)):
            return self._call(turn, bound, why)
        best, stay = self._best(turn), self._best(turn, only=request.served_by)
        if best is None:
            return Plan(reason="no tier is left to ask")
        if stay is None or best.candidate.mean >= stay.candidate.mean:
            return self._call(turn, best, "")
        saved, margin = best.worth - stay.worth, self._come_down * max(0.0, stay.candidate.price)
        if saved > margin:
            return self._call(turn, best, f"comes down from {request.served_by}")
        why = f"stays, as coming down to {best.candidate.tier} gains only {usd(saved)}"
        return self._call(turn, stay, why)

    def _bound(self, request: ChatRequest, beliefs: Beliefs) -> tuple[str | None, str]:
        """The tier that the turn has to begin with, if it is not free to choose, and why."""
        at, unsure = request.served_by, beliefs.flags & UNSURE
        if at and self._stays:
            return at, f"the conversation stays with {at}"
        if at and _in_tool_loop(request):
            return at, f"{at} waits for the result of its tool call"
        if unsure:
            flags = ", ".join(sorted(unsure))
            return self._safe, f"the estimate is flagged {flags}: the tier for when unsure"
        return None, ""

    def _go_on(self, turn: _Turn) -> Plan:
        last, best = turn.calls[-1], turn.best
        said = told(last, turn.answers.get(last.index))
        if last.answered and last.step.judge is None:
            unjudged = f"; nothing judged it against the quality {turn.wanted:g} wanted"
            return Plan(
                reason=said + (unjudged if turn.wanted else ""),
                accept=last.index,
                degraded=turn.answers[last.index] < turn.wanted,
            )
        choice = self._best(turn)
        needed = turn.wanted if choice is None else max(turn.wanted, self._quality_of(choice))
        threshold = _threshold(turn, needed)
        if choice is not None and (not turn.answers or best < needed):
            return replace(self._call(turn, choice, said), threshold=threshold)
        if not turn.answers:
            return _last_resort(turn.calls, said, threshold)
        accept = max(turn.answers, key=lambda i: (turn.answers[i], i))
        return Plan(
            reason=f"{said}; {self._enough(turn, accept, choice)}",
            threshold=threshold,
            accept=accept,
            # An answer from before the last call is one for which something better was sought.
            degraded=best < max(turn.wanted, turn.missed) or accept != last.index,
        )

    def _best(self, turn: _Turn, *, only: str | None = None) -> Choice | None:
        """The choice that is worth most; an answer is held for a judge only where that adds."""
        hold = self._quality_usd * self._judge_gain
        allowed = [
            choice
            for choice in turn.choices
            if only in (None, choice.candidate.tier) and self._may(turn, choice)
        ]
        return max(allowed, key=lambda c: c.worth - (hold if c.judged else 0.0), default=None)

    def _may(self, turn: _Turn, choice: Choice) -> bool:
        """Whether it can give the client what it wants, or at least more than is in hand."""
        mean = choice.candidate.mean
        if choice.judged:
            return True
        if mean >= turn.wanted:
            # Taken unseen it is the answer that is given: never a lesser one than is in hand.
            return mean >= turn.best
        # What is believed too little is not taken unseen where somebody can judge it.
        return choice.candidate.judging is None and mean >= turn.best

    def _quality_of(self, choice: Choice) -> float:
        """The quality that an answer in hand must have to be worth as much."""
        return min(1.0, max(0.0, choice.worth / self._quality_usd))

    def _call(self, turn: _Turn, choice: Choice, why: str) -> Plan:
        one = choice.candidate
        judge = self._options[one.tier].judge if choice.judged else None
        how = f"judged by {judge}" if judge else "unseen"
        known = turn.quotes[one.tier].price is not None
        costs = usd(one.price) if known else "an unknown price"
        asks = (
            f"asks {one.tier}, {how}: worth {usd(choice.worth)}, being right with {one.mean:.3f} "
            f"for {costs}"
        )
        reason = "; ".join(each for each in (why, asks, self._instead(turn, one.tier)) if each)
        return Plan(steps=[Step(tier=one.tier, judge=judge)], reason=reason)

    def _instead(self, turn: _Turn, tier: str) -> str:
        """What else could be done, and what that is worth."""
        worth = {t: w for t, w in _worth(turn.choices).items() if t != tier}
        if turn.answers:
            worth = {"the answer in hand": self._quality_usd * turn.best, **worth}
        return ", ".join(f"{what} is worth {usd(much)}" for what, much in worth.items())

    def _enough(self, turn: _Turn, accept: int, choice: Choice | None) -> str:
        """Why an answer is taken."""
        taken = next(call for call in turn.calls if call.index == accept)
        whose = "it" if taken is turn.calls[-1] else f"{taken.step.tier}'s answer"
        worth = f"{whose} is worth {usd(self._quality_usd * turn.answers[accept])}"
        if choice is None:
            better = " that may be better" if turn.choices else ""
            return f"{worth}, and no tier is left to ask{better}"
        return f"{worth}, and asking {choice.candidate.tier} {usd(choice.worth)}"


def _worth(choices: Sequence[Choice]) -> dict[str, float]:
    """What asking each tier is worth."""
    worth: dict[str, float] = {}
    for choice in choices:
        tier = choice.candidate.tier
        worth[tier] = max(choice.worth, worth.get(tier, choice.worth))
    return worth


def _leads(choices: Sequence[Choice], stopping: float) -> dict[str, float]:
    """By how many dollars each tier leads what else could be done."""
    worth = _worth(choices)
    return {
        tier: mine - max([w for t, w in worth.items() if t != tier] + [stopping])
        for tier, mine in worth.items()
    }


def _quality(call: Attempt, beliefs: Beliefs) -> float | None:
    """What is believed of an answer in hand; None where there is none, or its judge did not say."""
    if not call.answered or (call.step.judge is not None and score_of(call) is None):
        return None
    return _believed(beliefs, call.step.tier)


def _believed(beliefs: Beliefs, tier: str) -> float:
    return beliefs.mean.get(tier, PRIOR)


def _threshold(turn: _Turn, needed: float) -> float | None:
    """The score with which the last answer would have been taken.

    None where the judge did not say, or where more than its word decides what is believed.
    """
    last = turn.calls[-1]
    score, believed = score_of(last), turn.answers.get(last.index)
    if score is None or believed is None or not at_its_word(score, believed):
        return None
    others = [q for index, q in turn.answers.items() if index != last.index]
    return max([needed, *others])


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
    """Whether the model waits for the result of a tool that it called.

    Agents put reminders of their own behind a result: what counts is whether it was answered.
    """
    roles = [message.get("role") for message in request.messages]
    since = next((i for i in reversed(range(len(roles))) if roles[i] == "assistant"), 0)
    return any(role in _RESULTS for role in roles[since:])


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
