"""The loop: ask the policy, ask a tier, ask its judge, price, until the policy accepts.

Streamed and whole answers come from the same events; `run` drains them. Failures of tiers and
judges become attempts, and every request reaches the audit sink, also when nothing answered or the
client left. The engine holds no threshold: only a policy accepts.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from cascade import posterior
from cascade.errors import BackendError, BackendProtocolError, EstimatorError, JudgeError
from cascade.experiments import Arm
from cascade.protocols import AuditSink, Judge
from cascade.result import AttemptFinished, AttemptStarted, CascadeResult, Delta, Event, Finished
from cascade.run import Run
from cascade.snapshot import Snapshot
from cascade.tiers.requirements import needs
from cascade.types import Beliefs, ChatRequest, Completion, Plan, Verdict, total


class CascadeEngine:
    """Answers requests under one configuration."""

    def __init__(self, snapshot: Snapshot, sink: AuditSink) -> None:
        self.snapshot = snapshot
        self._sink = sink

    async def run(self, request: ChatRequest, arm: Arm) -> CascadeResult:
        """Answer a request; the result says why there is no answer when there is none."""
        async with aclosing(self.events(request, arm)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.result
        raise AssertionError("events end with Finished")

    async def events(self, request: ChatRequest, arm: Arm) -> AsyncGenerator[Event]:
        """Answer a request step by step. Closing the iterator cancels the call under way."""
        run = Run(request=request, arm=arm, config_version=self.snapshot.version)
        try:
            run.prior = run.beliefs = self._estimate(run)
            self._survey(run)
            async with aclosing(self._climb(run)) as events:
                async for event in events:
                    yield event
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

    def _estimate(self, run: Run) -> Beliefs:
        tiers = self.snapshot.tiers
        if run.arm.estimator is None:
            return posterior.prior(tiers, "no_estimator")
        try:
            return run.arm.estimator.estimate([run.request])[0]
        except EstimatorError:
            return posterior.prior(tiers, "fallback")

    def _survey(self, run: Run) -> None:
        """Which tiers can serve the request, and what each would cost."""
        needed = needs(run.request)
        for name, tier in self.snapshot.tiers.items():
            if (lack := tier.unfit(needed)) is None:
                run.quotes[name] = tier.quote(run.request)
            else:
                run.unfit[name] = lack

    @staticmethod
    def _decide(run: Run) -> Plan:
        plan = run.arm.policy.decide(run.request, run.beliefs, run.quotes, run.attempts)
        if plan.steps and plan.steps[0].tier in run.unfit:
            raise RuntimeError(
                f"policy {run.arm.policy.name!r} asks {plan.steps[0].tier}, which was left out"
            )
        if not run.attempts and (left_out := run.left_out()):
            # On the first attempt's row, so that the audit log says why a tier was not asked.
            plan = replace(plan, reason=f"{plan.reason}; {left_out}")
        if plan.steps and run.committed:
            # Text of two models is never joined, so a policy that released one answer is done.
            raise RuntimeError(
                f"policy {run.arm.policy.name!r} goes on after it released an answer"
            )
        return plan

    async def _attempt(self, run: Run) -> AsyncGenerator[Event]:
        step = run.plan.steps[0]
        judge = self.snapshot.judges[step.judge] if step.judge else None
        yield AttemptStarted(attempt=run.start(step, held=judge is not None))
        try:
            async with aclosing(self._ask(run, judge)) as deltas:
                async for delta in deltas:
                    yield delta
        except BackendError as error:
            yield AttemptFinished(attempt=run.fail(error))
            return
        if judge is not None:
            await self._judge(run, judge)

    async def _ask(self, run: Run, judge: Judge | None) -> AsyncGenerator[Delta]:
        tier = self.snapshot.tiers[run.current.step.tier]
        request = run.request.asking(judge.needs) if judge else run.request
        completion: Completion | None = None
        async with aclosing(tier.stream(request)) as chunks:
            async for chunk in chunks:
                completion = chunk.completion or completion
                if (delta := run.take(chunk)) is not None:
                    yield delta
        if completion is None:
            raise BackendProtocolError(f"{tier.name}'s stream ended without a completion")
        cost = tier.price(completion.usage)
        run.answer(completion, cost, tier.cold_premium(completion.usage, cost))

    async def _judge(self, run: Run, judge: Judge) -> None:
        completion = run.current.completion
        if completion is None:
            raise AssertionError("only whole answers are judged")
        run.judging()
        verdict: Verdict | None = None
        failure: JudgeError | None = None
        try:
            answers = completion.each()
            verdict = _strictest([await judge.judge(run.request, one) for one in answers])
        except JudgeError as error:
            failure = error
        run.judged(verdict, failure)


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
