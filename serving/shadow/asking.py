"""Asks one tier as the engine would for an answer, and judges answers, for nobody's sake.

What is asked here is no turn of a conversation: the caches it warms, the speeds and the lengths it
shows are learned from, and what the traffic wants is not.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cascade.baseline import Baseline
from cascade.early import free
from cascade.engine import CascadeEngine, strictest_verdict
from cascade.errors import JudgeError
from cascade.experiments import Arm
from cascade.failures import failure
from cascade.forecast import Forecast
from cascade.policies.fixed import FixedPolicy
from cascade.protocols import AuditSink, Judge, Traces, Untraced
from cascade.result import CascadeResult
from cascade.snapshot import Snapshot
from cascade.types import Attempt, ChatRequest, Completion, Kind, Outcome, Step
from serving.shadow.idle import Idle

NAME = "shadow"


@dataclass(slots=True, kw_only=True)
class Asking:
    """The shadow calls of one request, in the order in which they were made.

    Attributes:
        result: of the request.
        propensity: how likely it was to be drawn.
        snapshot: the configuration.
        forecast: for calls aside.
        judges: who look at each answer, by name.
        asks: by judge, the tiers that it asks.
        idle: lets calls begin when they are in nobody's way.
        traces: says where each call is in a trace.
        ruled_out: tells the tiers that the request must not go to now.
        calls: made so far; their indices go on from those of the request.
    """

    result: CascadeResult
    propensity: float
    snapshot: Snapshot
    forecast: Forecast
    judges: Mapping[str, Judge]
    asks: Mapping[str, Collection[str]]
    idle: Idle
    traces: Traces = field(default_factory=Untraced)
    ruled_out: Callable[[], Collection[str]] = tuple
    calls: list[Attempt] = field(default_factory=list)

    async def ask(self, tier: str) -> None:
        """Put the request to a tier, and have its answer judged.

        A tier that cannot serve the request is not asked, and one that fails is noted as failed.
        """
        caught = _Caught()
        engine = CascadeEngine(
            self.snapshot,
            caught,
            forecast=self.forecast,
            baseline=Baseline(self.snapshot.tiers, max_blocks=1),
            traces=_From(self._index, self.traces),
        )
        try:
            async with self.idle.asking(tier):
                if self._may_ask([tier]):  # still: it may have been drained meanwhile
                    await engine.run(self._request(tier), _always(tier))
        finally:  # what was spent on a call that is cut off is caught as well
            made = [each for result in caught.results for each in result.attempts]
            for attempt in made:
                self._add(attempt, reason="not asked for the answer, but to see what it would say")
        await self.judge([each for each in made if each.answered])

    async def judge(self, answers: Sequence[Attempt]) -> None:
        """Have answers judged, be they the request's own or those of shadow calls."""
        for attempt in answers:
            for name, judge in self.judges.items():
                # What must not see the request must not judge it either.
                if attempt.completion and self._may_ask(self._asked_by(name, attempt.step.tier)):
                    await self._judge(attempt.step.tier, attempt.completion, name, judge)

    async def _judge(self, tier: str, answer: Completion, name: str, judge: Judge) -> None:
        known: dict[str, Any]
        try:
            async with self.idle.judging(self._asked_by(name, tier)):
                since, began = self._seconds, time.perf_counter()
                asked = self.traces.placed(self.result.request, self._index)
                verdict = await strictest_verdict(asked, judge, answer)
            known = {"verdict": verdict, "cost": verdict.cost}
        except JudgeError as error:
            known = {"outcome": Outcome.JUDGE_ERROR, "error": failure(error), "cost": error.cost}
        made = Attempt(
            index=0,
            kind=Kind.SHADOW,
            step=Step(tier=tier, judge=name),
            started=since,
            seconds=time.perf_counter() - began,
            **known,
        )
        self._add(made, reason=f"judges {tier}'s answer, and nobody acts on it")

    def _may_ask(self, tiers: Collection[str]) -> bool:
        return set(tiers).isdisjoint(self.ruled_out())

    def _asked_by(self, name: str, tier: str) -> Collection[str]:
        """The tiers that a judge is taken to ask about a tier's answer."""
        return self.asks[name] or ([] if free(self.judges[name]) else [tier])

    def _request(self, tier: str) -> ChatRequest:
        """The request as it was, without limits that were about the answer."""
        offered = self.snapshot.tiers[tier].capabilities
        request = replace(self.result.request, budget=None, idempotency_key="")
        for judge in self.judges.values():
            if offered is None or offered.issuperset(judge.needs):
                request = request.asking(judge.needs)
        return request

    def _add(self, attempt: Attempt, *, reason: str) -> None:
        # Nobody took it: that a policy would is not said of it.
        own = None if attempt.outcome is Outcome.ACCEPTED else attempt.outcome
        began = attempt.started if attempt.kind is Kind.SHADOW else self._seconds - attempt.seconds
        self.calls.append(
            replace(
                attempt,
                index=self._index,
                kind=Kind.SHADOW,
                reason=reason,
                outcome=own,
                propensity=self.propensity,
                started=max(0.0, began),
            )
        )

    @property
    def _index(self) -> int:
        """Of the call that is made next."""
        return len(self.result.attempts) + len(self.calls)

    @property
    def _seconds(self) -> float:
        """Since the request began."""
        return time.time() - self.result.started_at


class _From(Traces):
    """The places of calls whose indices do not begin at 0.

    Args:
        first: the first of their indices.
        inner: says where they are.
    """

    def __init__(self, first: int, inner: Traces) -> None:
        self._first = first
        self._inner = inner

    def placed(self, request: ChatRequest, index: int) -> ChatRequest:
        """The request as its attempt of an index puts it."""
        return self._inner.placed(request, self._first + index)


class _Caught(AuditSink):
    """Keeps what became of a call."""

    def __init__(self) -> None:
        self.results: list[CascadeResult] = []

    def write(self, result: CascadeResult) -> None:
        """Take it."""
        self.results.append(result)


def _always(tier: str) -> Arm:
    return Arm(name=None, policy=FixedPolicy(name=NAME, tier=tier))
