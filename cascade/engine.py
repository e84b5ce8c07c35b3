"""The loop: ask the policy, ask a tier, ask its judge, price, until the policy accepts.

Streamed and whole answers come from the same events; `run` drains them. Failures of tiers and
judges become attempts, and every request reaches the audit sink, also when nothing answered or the
client left. The engine holds no threshold: only a policy accepts.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from cascade.baseline import Baseline
from cascade.call import Call
from cascade.early import EarlyLook, free
from cascade.errors import (
    BackendError,
    DeadlineError,
    JudgeError,
)
from cascade.estimating import estimate
from cascade.experiments import Arm
from cascade.forecast import Forecast
from cascade.protocols import AuditSink, Judge, Traces, Untraced
from cascade.result import AttemptFinished, AttemptStarted, CascadeResult, Delta, Event, Finished
from cascade.run import Run
from cascade.sessions import SessionHistory
from cascade.snapshot import Snapshot
from cascade.tiers.requirements import needs
from cascade.tiers.windows import too_long
from cascade.types import ChatRequest, Chunk, Completion, Cost, Plan, Step, Verdict, total

MOST_ATTEMPTS = 64
"""Calls and verdicts that no sound policy makes for one request."""


class CascadeEngine:
    """Answers requests under one configuration.

    Args:
        snapshot: the configuration; another may take its place, and a request keeps its own.
        sink: takes every result.
        forecast: what was learned of the tiers and of the traffic; nothing yet without one.
        baseline: what the dearest tier would have warm; nothing yet without one.
        sessions: how much each session had to go up lately; nothing yet without one.
        traces: says where each call is in a trace; without one no call carries that.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        sink: AuditSink,
        *,
        forecast: Forecast | None = None,
        baseline: Baseline | None = None,
        sessions: SessionHistory | None = None,
        traces: Traces | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.forecast = forecast or Forecast(snapshot.tiers)
        self.baseline = baseline or Baseline(snapshot.tiers)
        self.sessions = sessions or SessionHistory()
        self._sink = sink
        self._traces = traces or Untraced()

    async def run(
        self, request: ChatRequest, arm: Arm, *, snapshot: Snapshot | None = None
    ) -> CascadeResult:
        """Answer a request; the result says why there is no answer when there is none."""
        events_of = self.events(request, arm, live=False, snapshot=snapshot)
        async with aclosing(events_of) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.result
        raise AssertionError("events end with Finished")

    async def events(
        self,
        request: ChatRequest,
        arm: Arm,
        *,
        live: bool = True,
        snapshot: Snapshot | None = None,
    ) -> AsyncGenerator[Event]:
        """Answer a request step by step. Closing the iterator cancels the call under way.

        Args:
            request: what to answer.
            arm: by which policy.
            live: what is released goes to the client at once and cannot be taken back. Otherwise
                nothing is released: the result has the answer, and until then any tier may still
                take over.
            snapshot: the one that the arm is of; the engine's when it begins without one.
        """
        request = self.forecast.recall(self.sessions.recall(request))
        run = Run(
            request=request,
            arm=arm,
            snapshot=snapshot or self.snapshot,
            live=live,
            traces=self._traces,
        )
        try:
            run.prior = run.beliefs = await estimate(run)
            await self._survey(run)
            async with aclosing(self._climb(run)) as events:
                async for event in events:
                    yield event
            run.baseline = self._cost_of_the_dearest(run)
        except BaseException as error:
            self._sink.write(run.interrupted(error))
            self._over(run)
            raise
        result = run.result()
        self._sink.write(result)
        if not request.prewarm:  # it is no turn of anybody's
            self.sessions.learn(request, result.attempts)
        self._over(run)
        yield Finished(result=result)

    async def _climb(self, run: Run) -> AsyncGenerator[Event]:
        while True:
            run.plan = self._decide(run)
            run.note_leads()
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

    async def _survey(self, run: Run) -> None:
        """Which tiers can serve the request, and what each would cost and take."""
        request, tiers, steps = run.request, run.snapshot.tiers, run.arm.policy.steps
        needed, lacks = needs(request), dict(run.snapshot.ruled_out(request))
        for name, tier in tiers.items():
            if name not in lacks and (lack := tier.unfit(needed)):
                lacks[name] = lack
        fit = [name for name in tiers if name not in lacks]
        wanted = {step.tier for step in steps}.intersection(fit)
        cached = {name for name in wanted if tiers[name].cache and not tiers[name].cooling()}
        run.reading = await self.forecast.read(request, fit, counted=cached)
        lacks |= await too_long([tiers[name] for name in wanted], request, run.reading.counted)
        for name, lack in lacks.items():
            run.candidates.leave_out(name, lack)
        for quote in self.forecast.quotes(request, run.reading, steps):
            if quote.tier not in lacks:
                run.candidates.add(quote)

    def _over(self, run: Run) -> None:
        if run.reading is not None:
            given = run.completion.tier if run.completion else ""
            self.forecast.over(run.request, run.reading, run.attempts, run.led, answered=given)

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
        judge = run.snapshot.judges[step.judge] if step.judge else None
        call = run.start(step, run.snapshot.tiers[step.tier], held=judge is not None)
        look = self._look(run, step)
        call.watched = look is not None
        yield AttemptStarted(attempt=run.current)
        request = run.traces.placed(run.request, run.current.index)
        for needy in (judge, look and look.judge):
            request = request.asking(needy.needs) if needy else request
        call.asked = True
        try:
            async with aclosing(self._listen(run, call, request, look)) as deltas:
                async for delta in deltas:
                    yield delta
            completion = call.whole()
        except (BackendError, DeadlineError) as error:
            yield AttemptFinished(attempt=run.fail(error))
            return
        self.forecast.ended(run.request, run.prompt, run.answer(completion))
        # What was released stands; what the whole of it is worth is only worth knowing for free.
        if judge is not None and (run.current.commit is None or free(judge)):
            await self._judge(run, judge, completion)
            self.forecast.judged(run.attempts[-1])

    def _look(self, run: Run, step: Step) -> EarlyLook | None:
        """The look at the answer's start that may release it, where that gains anything."""
        name = step.commit and (step.commit.judge or step.judge)
        # Nothing of a whole answer goes out early, and of n answers every one has to pass.
        several = (run.request.params.get("n") or 1) != 1
        if step.commit is None or not name or not run.live or several:
            return None
        request = run.traces.placed(run.request, len(run.attempts))  # a call of its own
        return EarlyLook(step.commit, run.snapshot.judges[name], request, step.tier)

    async def _listen(
        self, run: Run, call: Call, request: ChatRequest, look: EarlyLook | None
    ) -> AsyncGenerator[Delta]:
        """Take in an answer; what goes out of it before it is whole."""
        stream, tier = call.tier.stream(request), call.tier.name
        if run.seconds_left is not None:
            stream = _in_time(run, stream)
        try:
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    waiting = call.first_token_seconds is None
                    pieces = call.take(chunk)
                    if waiting and call.first_token_seconds is not None:
                        self.forecast.began(run.request, run.prompt, chunk.replica)
                    for choices in pieces if run.live else ():
                        yield run.release(tier, chunk, choices)
                    if look is not None and (said := await _said(look, chunk)) is not None:
                        for delta in run.looked(look, said):
                            yield delta
        finally:
            if look is not None:
                look.cancel()

    @staticmethod
    async def _judge(run: Run, judge: Judge, completion: Completion) -> None:
        run.judging()
        asked = run.traces.placed(run.request, len(run.attempts))
        verdict: Verdict | None = None
        failure: JudgeError | None = None
        try:
            if run.seconds_left is None:
                verdict = await strictest_verdict(asked, judge, completion)
            else:
                verdict = await _judged_in_time(run, asked, judge, completion)
        except JudgeError as error:
            failure = error
        run.judged(verdict, failure)

    def _cost_of_the_dearest(self, run: Run) -> Cost | None:
        """What the answer would have cost there, which is not sent what only fills a cache."""
        quote, answer = run.candidates.dearest, run.completion
        if quote is None or answer is None or run.reading is None or run.request.prewarm:
            return None
        prices = run.snapshot.tiers[quote.tier].prices
        return self.baseline.cost(quote, prices, run.reading.text, answer) if prices else None


async def _said(look: EarlyLook, chunk: Chunk) -> Verdict | JudgeError | None:
    try:
        return await look.after(chunk)
    except JudgeError as error:
        return error


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


async def strictest_verdict(request: ChatRequest, judge: Judge, completion: Completion) -> Verdict:
    """What a judge says of an answer, and of n answers of the one it likes least.

    Raises:
        JudgeError: it could not judge one of them.
    """
    return _strictest([await judge.judge(request, one) for one in completion.each()])


async def _judged_in_time(
    run: Run, asked: ChatRequest, judge: Judge, completion: Completion
) -> Verdict:
    """The verdict; cannot tell when the time is over first."""
    limit = asyncio.timeout(run.seconds_left)
    try:
        async with limit:
            return await strictest_verdict(asked, judge, completion)
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
