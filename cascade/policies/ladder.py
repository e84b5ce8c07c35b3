"""Tiers in a fixed order, one threshold a step: the cascade that people can reason about.

A step's answer is accepted when its judge's score reaches the step's threshold, or the quality that
the client wants if that is more. A judge that cannot
tell, a judge that failed and a tier that failed all mean: go on. A step without a judge accepts
whatever answer comes in whole.

A step with a commit rule is looked at while its answer grows. What was released then stands: its
start reached the rule's own threshold, or the quality that the client wants if that is more.

With `when_unsure` a request of which nothing is known beforehand, since it is unlike what the
estimator has learned from or there is no estimate, starts at the step of that tier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cascade.commit import CommitRule
from cascade.errors import ConfigError
from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of the ladder; judge and accept_at come together or not at all.

    Attributes:
        commit: when an answer that still grows is released; needs a judge for those that are not.
    """

    tier: str
    judge: str | None = None
    accept_at: float | None = None
    commit: CommitRule | None = None

    @property
    def step(self) -> Step:
        """The call it stands for."""
        return Step(tier=self.tier, judge=self.judge, commit=self.commit)

    def wanted(self, quality: float | None) -> "Rung":
        """The same for a client that wants at least that quality."""
        if quality is None or self.accept_at is None:
            return self
        commit = self.commit and replace(self.commit, at=max(self.commit.at, quality))
        return replace(self, accept_at=max(self.accept_at, quality), commit=commit)


UNSURE = frozenset({"out_of_domain", "fallback"})
"""Flags of beliefs that say no more than what is believed of any request."""


class LadderPolicy:
    """Climbs until an answer passes its threshold or no step is left.

    Args:
        name: how the audit log calls it.
        steps: from the bottom.
        when_unsure: tier of the step to begin with when nothing is known beforehand; None: the
            first.

    Attributes:
        heedless: it looks at no beliefs.
    """

    def __init__(
        self,
        *,
        name: str,
        steps: Sequence[Rung | Mapping[str, Any]],
        when_unsure: str | None = None,
    ) -> None:
        if not steps:
            raise ConfigError("a ladder needs at least one step", param="steps")
        self.name = name
        self._rungs = tuple(_rung(step, f"steps.{i}") for i, step in enumerate(steps))
        for i, rung in enumerate(self._rungs[:-1]):
            if rung.judge is None:
                raise ConfigError(
                    "a step without a judge accepts every answer, so the steps after it are never "
                    "reached; give it a judge and accept_at, or end the ladder here",
                    param=f"steps.{i}",
                )
        self.steps: Sequence[Step] = tuple(rung.step for rung in self._rungs)
        tiers = [rung.tier for rung in self._rungs]
        if when_unsure is not None and when_unsure not in tiers:
            raise ConfigError(
                f"no step is of tier {when_unsure!r}; there are: {', '.join(tiers)}",
                param="when_unsure",
            )
        self._safe = 0 if when_unsure is None else tiers.index(when_unsure)
        self.heedless = self._safe == 0

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """Accept the last answer, or the next step, or the best answer when no step is left."""
        calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
        quality = request.budget.quality if request.budget else None
        unsure = beliefs.flags & UNSURE if self._safe else frozenset[str]()
        first = self._safe if unsure else 0
        # What was passed over at the start is asked when nothing above it answers.
        order = (*self._rungs[first:], *self._rungs[:first])
        rungs = [rung.wanted(quality) for rung in order]
        place = _place(rungs, calls)
        rest = [rung.step for rung in rungs[place + 1 :] if rung.tier in quotes]
        if not calls:
            return _begin(rest, unsure)
        last, rung = calls[-1], rungs[place]
        at = rung.accept_at
        reason = _explain(last, rung)
        if _passes(last, at):
            return Plan(reason=reason, threshold=at, accept=last.index)
        if rest:
            return Plan(steps=rest, reason=reason, threshold=at)
        return self._settle(calls, reason, at)

    @staticmethod
    def _settle(calls: Sequence[Attempt], reason: str, threshold: float | None) -> Plan:
        answered = [call for call in calls if call.answered]
        if not answered:
            return Plan(reason=f"{reason}; no step is left", threshold=threshold)
        best = max(answered, key=_standing)
        return Plan(
            reason=f"{reason}; no step is left, so the best answer so far is {best.step.tier}'s",
            threshold=threshold,
            accept=best.index,
            degraded=True,
        )


def _begin(steps: Sequence[Step], unsure: frozenset[str]) -> Plan:
    if not steps:
        return Plan(reason="no step of the ladder is left")
    if unsure:
        why = "the estimate is flagged " + ", ".join(sorted(unsure))
        return Plan(steps=steps, reason=f"{why}: the step for when unsure")
    return Plan(steps=steps, reason="the first step of the ladder")


def _rung(step: Rung | Mapping[str, Any], where: str) -> Rung:
    """A rung that can do its work, from a Rung or its fields as the configuration gives them."""
    if not isinstance(step, Rung):
        step = _given(step, where)
    if not isinstance(step.tier, str) or not isinstance(step.judge, str | None):
        raise ConfigError("tier and judge are each a name", param=where)
    if (step.judge is None) != (step.accept_at is None):
        raise ConfigError("judge and accept_at come together", param=where)
    if step.commit is not None and step.judge is None:
        raise ConfigError(
            "a step without a judge streams live anyway; commit needs a judge and accept_at for "
            "the answers that it does not release",
            param=f"{where}.commit",
        )
    at = step.accept_at
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise ConfigError("accept_at must be a number", param=f"{where}.accept_at")
    if at is not None and not 0.0 < at <= 1.0:
        raise ConfigError(
            "scores lie in [0, 1]: at 0 or less the step never escalates, above 1 it never accepts",
            param=f"{where}.accept_at",
        )
    return step


def _given(step: Mapping[str, Any], where: str) -> Rung:
    if unknown := step.keys() - {"tier", "judge", "accept_at", "commit"}:
        raise ConfigError("unknown key", param=f"{where}.{min(unknown)}")
    if "tier" not in step:
        raise ConfigError("a step needs a tier", param=where)
    rule = step.get("commit")
    commit = None if rule is None else _commit(rule, f"{where}.commit")
    return Rung(**{**step, "commit": commit})


def _commit(given: Any, where: str) -> CommitRule:
    """A commit rule from its fields as the configuration gives them."""
    if not isinstance(given, Mapping):
        raise ConfigError("it is a mapping with after_tokens and at", param=where)
    if unknown := given.keys() - {"after_tokens", "at", "judge"}:
        raise ConfigError("unknown key", param=f"{where}.{min(unknown)}")
    for name in ("after_tokens", "at"):
        if name not in given:
            raise ConfigError(f"the key {name} is missing", param=where)
    rule = CommitRule(**given)
    if not isinstance(rule.judge, str | None):
        raise ConfigError("judge is a name", param=f"{where}.judge")
    if not _is_number(rule.after_tokens, int) or rule.after_tokens < 1:
        raise ConfigError("it is a whole number of tokens from 1", param=f"{where}.after_tokens")
    if not _is_number(rule.at, int | float) or not 0.0 < rule.at <= 1.0:
        raise ConfigError(
            "scores lie in [0, 1]: at 0 or less every answer is released, above 1 none ever is",
            param=f"{where}.at",
        )
    return rule


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _place(rungs: Sequence[Rung], calls: Sequence[Attempt]) -> int:
    """The rung of the last call; -1 before the first.

    Calls climb, so each is of the first rung above the one before it that asks for its step: had
    that been passed over for want of a quote, so would every equal one above it.
    """
    steps, place = [rung.step for rung in rungs], -1
    for call in calls:
        place = steps.index(call.step, place + 1)
    return place


def _passes(call: Attempt, at: float | None) -> bool:
    if not call.answered:
        return False
    if at is None or call.commit is not None:
        return True
    score = call.verdict.score if call.verdict else None
    return score is not None and score >= at


def _explain(call: Attempt, rung: Rung) -> str:
    if not call.answered:
        return f"{call.step.tier} failed"
    if rung.accept_at is None:
        return f"{call.step.tier} is not judged"
    judged = _judged(call, rung.judge, rung.accept_at)
    if call.commit is None:
        return judged
    whole = judged if call.verdict else "it is not judged as a whole"
    return (
        f"{call.step.tier}'s answer was released while it grew: {call.commit}, which reaches "
        f"{call.commit.at:.3f}; {whole}"
    )


def _judged(call: Attempt, judge: str | None, at: float) -> str:
    tier = call.step.tier
    if call.verdict is None:
        return f"{judge} failed on {tier}'s answer"
    if call.verdict.score is None:
        return f"{judge} cannot tell about {tier}'s answer"
    sign = "reaches" if call.verdict.score >= at else "is below"
    return f"{judge} gives {tier}'s answer {call.verdict.score:.3f}, which {sign} {at:.3f}"


def _standing(call: Attempt) -> tuple[float, int]:
    score = call.verdict.score if call.verdict else None
    return (-1.0 if score is None else score, call.index)
