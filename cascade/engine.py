"""The loop: ask the policy, ask a tier, ask its judge, price, until the policy accepts.

Streamed and whole answers come from the same events; `run` drains them. Failures of tiers and
judges become attempts, and every request reaches the audit sink, also when nothing answered or the
client left. The engine holds no threshold: only a policy accepts.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from cascade import posterior
from cascade.baseline import Baseline
from cascade.errors import (
    BackendError,
    DeadlineError,
    EstimatorError,
    JudgeError,
)
from cascade.experiments import Arm
from cascade.pace import Pace
from cascade.protocols import AuditSink, Judge
from cascade.result import AttemptFinished, AttemptStarted, CascadeResult, Event, Finished
from cascade.run import Run
from cascade.snapshot import Snapshot
from cascade.tiers import ExpectedTokens
from cascade.tiers.requirements import needs
from cascade.tiers.windows import too_long
from cascade.types import Beliefs, ChatRequest, Chunk, Completion, Cost, Plan, Verdict, total

MOST_ATTEMPTS = 64
"""Calls and verdicts that no sound policy makes for one request."""


class CascadeEngine:
    """Answers requests under one configuration.

    Args:
        snapshot: the configuration.
        sink: takes every result.
        pace: what was learned of the tiers' speed; nothing yet without one.
        baseline: what the dearest tier would have warm; nothing yet without one.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        sink: AuditSink,
        *,
        pace: Pace | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.pace = pace or Pace()
        self.baseline = baseline or Baseline()
        self._sink = sink

    async def run(self, request: ChatRequest, arm: Arm) -> CascadeResult:
        """Answer a request; the result says why there is no answer when there is none."""
        async with aclosing(self.events(request, arm, live=False)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.result
        raise AssertionError("events end with Finished")

    async def events(
        self, request: ChatRequest, arm: Arm, *, live: bool = True
    ) -> AsyncGenerator[Event]:
        """Answer a request step by step. Closing the iterator cancels the call under way.

        Args:
            request: what to answer.
            arm: by which policy.
            live: what is released goes to the client at once and cannot be taken back. Otherwise
                nothing is sent before the end, and until then any tier may still take over.
        """
        run = Run(request=request, arm=arm, config_version=self.snapshot.version, live=live)
        try:
            run.prior = run.beliefs = await self._estimate(run)
            await self._survey(run)
            async with aclosing(self._climb(run)) as events:
                async for event in events:
                    yield event
            run.baseline = self._cost_of_the_dearest(run)
        except BaseException as error:
            self._sink.write(run.interrupted(error))
            raise
        result = run.result()
        self._sink.write(result)
        yield Finished(result=result)

    async def _climb(self, run: Run) -> AsyncGenerator[Event]:
        while True:
            run.plan = self._decide(run)
            if (settled := run.settle()) is not None:
                yield AttemptFinished(attempt=settled)
            if not run.plan.steps:
                break
            async with aclosing(self._attempt(run)) as events:
                async for event in events:
                    yield event
            if run.error is not None:
                return
        for delta in run.release_held():
            yield delta

    async def _estimate(self, run: Run) -> Beliefs:
        tiers = self.snapshot.tiers
        if run.arm.estimator is None:
            return posterior.prior(tiers, "no_estimator")
        try:
            return (await run.arm.estimator.estimate([run.request]))[0]
        except EstimatorError:
            return posterior.prior(tiers, "fallback")

    async def _survey(self, run: Run) -> None:
        """Which tiers can serve the request, and what each would cost and take."""
        needed = needs(run.request)
        tokens = ExpectedTokens.of(run.request, needed)
        tiers = self.snapshot.tiers
        lacks = dict(self.snapshot.ruled_out(run.request))
        for name, tier in tiers.items():
            if name not in lacks and (lack := tier.unfit(needed)):
                lacks[name] = lack
        wanted = {step.tier for step in run.arm.policy.steps} - lacks.keys()
        lacks |= await too_long([tiers[name] for name in wanted], run.request)
        for name, tier in tiers.items():
            if name in lacks:
                run.candidates.leave_out(name, lacks[name])
            else:
                run.candidates.add(self.pace.expect(tier.quote(tokens)))

    @staticmethod
    def _decide(run: Run) -> Plan:
        run.hold_to_budget()
        candidates, policy = run.candidates, run.arm.policy
        plan = policy.decide(run.request, run.beliefs, candidates.quotes, run.attempts)
        if plan.steps and plan.steps[0].tier in candidates.unfit:
            raise RuntimeError(
                f"policy {policy.name!r} asks {plan.steps[0].tier}, which was left out"
            )
        if plan.steps and len(run.attempts) >= MOST_ATTEMPTS:
            raise RuntimeError(f"policy {policy.name!r} does not come to an end")
        if plan.steps and run.committed:
            # Text of two models is never joined, so a policy that released one answer is done.
            raise RuntimeError(f"policy {policy.name!r} goes on after it released an answer")
        satisfied = plan.accept is not None and not plan.degraded
        if not satisfied and (left_out := candidates.news()):
            # So that the audit log says why a tier was not asked.
            plan = replace(plan, reason=f"{plan.reason}; {left_out}")
        return plan

    async def _attempt(self, run: Run) -> AsyncGenerator[Event]:
        step = run.plan.steps[0]
        judge = self.snapshot.judges[step.judge] if step.judge else None
        call = run.start(step, self.snapshot.tiers[step.tier], held=judge is not None)
        yield AttemptStarted(attempt=run.current)
        request = run.request.asking(judge.needs) if judge else run.request
        call.asked = True
        try:
            stream = call.tier.stream(request)
            if run.seconds_left is not None:
                stream = _in_time(run, stream)
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    for choices in call.take(chunk):
                        yield run.release(step.tier, chunk, choices)
            completion = call.whole()
        except (BackendError, DeadlineError) as error:
            yield AttemptFinished(attempt=run.fail(error))
            return
        self.pace.observe(run.answer(completion))
        if judge is not None:
            await self._judge(run, judge, completion)

    @staticmethod
    async def _judge(run: Run, judge: Judge, completion: Completion) -> None:
        run.judging()
        verdict: Verdict | None = None
        failure: JudgeError | None = None
        try:
            if run.seconds_left is None:
                verdict = await _judged(run.request, judge, completion)
            else:
                verdict = await _judged_in_time(run, judge, completion)
        except JudgeError as error:
            failure = error
        run.judged(verdict, failure)

    def _cost_of_the_dearest(self, run: Run) -> Cost | None:
        quote, answer = run.candidates.dearest, run.completion
        if quote is None or answer is None:
            return None
        prices = self.snapshot.tiers[quote.tier].prices
        return self.baseline.cost(quote, prices, run.request, answer) if prices else None


async def _in_time(run: Run, stream: AsyncGenerator[Chunk]) -> AsyncGenerator[Chunk]:
    """The chunks, unless the time is over before any of them was released.

    Raises:
        DeadlineError: it is over, and the call is cancelled.
    """
    async with aclosing(stream) as chunks:
        while True:
            limit = asyncio.timeout(None if run.committed else run.seconds_left)
            try:
                async with limit:
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not limit.expired():
                    raise
                raise DeadlineError("the time allowed was over before it answered") from None
            yield chunk


async def _judged(request: ChatRequest, judge: Judge, completion: Completion) -> Verdict:
    return _strictest([await judge.judge(request, one) for one in completion.each()])


async def _judged_in_time(run: Run, judge: Judge, completion: Completion) -> Verdict:
    """The verdict; cannot tell when the time is over first."""
    limit = asyncio.timeout(run.seconds_left)
    try:
        async with limit:
            return await _judged(run.request, judge, completion)
    except TimeoutError:
        if not limit.expired():
            raise
        reason = "the time allowed was over before it could tell"
        return Verdict(judge=judge.name, score=None, reason=reason, cost=None)


def _strictest(verdicts: Sequence[Verdict]) -> Verdict:
    """Of n answers every one must pass: the lowest score, and none when one cannot be told."""
    if len(verdicts) == 1:
        return verdicts[0]
    scores = [verdict.score for verdict in verdicts]
    lowest = min(verdicts, key=lambda v: -1.0 if v.score is None else v.score)
    return replace(
        lowest,
        score=None if None in scores else lowest.score,
        cost=total([verdict.cost for verdict in verdicts]),
    )
