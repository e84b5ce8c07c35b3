"""Tiers in a fixed order, one threshold a step: the cascade that people can reason about.

A step's answer is accepted when its judge's score reaches the step's threshold, or the quality that
the client wants if that is more. A judge that cannot
tell, a judge that failed and a tier that failed all mean: go on. A step without a judge accepts
whatever answer comes in whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cascade.errors import ConfigError
from cascade.types import Attempt, Beliefs, ChatRequest, Kind, Plan, Quote, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of the ladder; judge and accept_at come together or not at all."""

    tier: str
    judge: str | None = None
    accept_at: float | None = None

    @property
    def step(self) -> Step:
        """The call it stands for."""
        return Step(tier=self.tier, judge=self.judge)


class LadderPolicy:
    """Climbs until an answer passes its threshold or no step is left."""

    def __init__(self, *, name: str, steps: Sequence[Rung | Mapping[str, Any]]) -> None:
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

    def decide(
        self,
        request: ChatRequest,
        beliefs: Beliefs,
        quotes: Mapping[str, Quote],
        attempts: Sequence[Attempt],
    ) -> Plan:
        """Accept the last answer, or the next step, or the best answer when no step is left."""
        del beliefs
        calls = [attempt for attempt in attempts if attempt.kind is Kind.ANSWER]
        place = self._place(calls)
        rest = [rung.step for rung in self._rungs[place + 1 :] if rung.tier in quotes]
        if not calls:
            reason = "the first step of the ladder" if rest else "no step of the ladder is left"
            return Plan(steps=rest, reason=reason)
        last, rung = calls[-1], self._rungs[place]
        at = _threshold(rung, request)
        reason = _explain(last, rung, at)
        if _passes(last, at):
            return Plan(reason=reason, threshold=at, accept=last.index)
        if rest:
            return Plan(steps=rest, reason=reason, threshold=at)
        return self._settle(calls, reason, at)

    def _place(self, calls: Sequence[Attempt]) -> int:
        """The rung of the last call; -1 before the first.

        Calls climb, so each is of the first rung above the one before it that asks for its step:
        had that been passed over for want of a quote, so would every equal one above it.
        """
        place = -1
        for call in calls:
            place = self.steps.index(call.step, place + 1)
        return place

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


def _rung(step: Rung | Mapping[str, Any], where: str) -> Rung:
    """A rung that can do its work, from a Rung or its fields as the configuration gives them."""
    if not isinstance(step, Rung):
        if unknown := step.keys() - {"tier", "judge", "accept_at"}:
            raise ConfigError("unknown key", param=f"{where}.{min(unknown)}")
        if "tier" not in step:
            raise ConfigError("a step needs a tier", param=where)
        step = Rung(**step)
    if not isinstance(step.tier, str) or not isinstance(step.judge, str | None):
        raise ConfigError("tier and judge are each a name", param=where)
    if (step.judge is None) != (step.accept_at is None):
        raise ConfigError("judge and accept_at come together", param=where)
    at = step.accept_at
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise ConfigError("accept_at must be a number", param=f"{where}.accept_at")
    if at is not None and not 0.0 < at <= 1.0:
        raise ConfigError(
            "scores lie in [0, 1]: at 0 or less the step never escalates, above 1 it never accepts",
            param=f"{where}.accept_at",
        )
    return step


def _threshold(rung: Rung, request: ChatRequest) -> float | None:
    """The step's own, or the quality that the client wants if that is more; None: unjudged."""
    wanted = request.budget.quality if request.budget else None
    if rung.accept_at is None or wanted is None:
        return rung.accept_at
    return max(rung.accept_at, wanted)


def _passes(call: Attempt, at: float | None) -> bool:
    if not call.answered:
        return False
    if at is None:
        return True
    score = call.verdict.score if call.verdict else None
    return score is not None and score >= at


def _explain(call: Attempt, rung: Rung, at: float | None) -> str:
    tier = call.step.tier
    if not call.answered:
        return f"{tier} failed"
    if at is None:
        return f"{tier} is not judged"
    if call.verdict is None:
        return f"{rung.judge} failed on {tier}'s answer"
    if call.verdict.score is None:
        return f"{rung.judge} cannot tell about {tier}'s answer"
    sign = "reaches" if call.verdict.score >= at else "is below"
    return f"{rung.judge} gives {tier}'s answer {call.verdict.score:.3f}, which {sign} {at:.3f}"


def _standing(call: Attempt) -> tuple[float, int]:
    score = call.verdict.score if call.verdict else None
    return (-1.0 if score is None else score, call.index)
