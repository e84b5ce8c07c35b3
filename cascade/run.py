"""The record of one request under way: the only thing that changes while it is answered.

The engine decides what happens next; this keeps what happened, so that whatever ends a request (an
answer, a failure, a client that leaves, a bug) there is a result to audit.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cascade.answers import characters, presented
from cascade.call import Call
from cascade.candidates import Candidates
from cascade.changing import changed
from cascade.commit import Commit
from cascade.early import EarlyLook
from cascade.errors import (
    BackendError,
    BackendRefusedError,
    BackendToolCallError,
    CascadeError,
    DeadlineError,
    EstimatorError,
    JudgeError,
    StreamBrokenError,
)
from cascade.experiments import Arm
from cascade.failures import failure, no_answer
from cascade.protocols import Traces, Untraced
from cascade.quote import Quote
from cascade.reading import Prompt, Reading
from cascade.result import CascadeResult, Delta
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from cascade.tool_calls import ToolCallGate
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Chunk,
    Completion,
    Cost,
    Json,
    Kind,
    Outcome,
    Plan,
    Step,
    Verdict,
    total,
)

_NOTHING = Beliefs(mean={})
_INVALID = (BackendRefusedError, BackendToolCallError)


@dataclass(slots=True, kw_only=True)
class Run:
    """One request under way.

    Attributes:
        prior: what was believed before any call.
        beliefs: the same after the verdicts so far.
        reading: what the tiers would read of the request.
        candidates: the tiers that may be asked, and why the others may not.
        led: quotes of tiers and the most by which each led the others, where a policy says so.
        current: the answer attempt made last.
        live: whether what is released goes to the client at once.
        traces: says where each call is in a trace.
        committed: whether anything went to the client.
        released: characters that went.
        baseline: see CascadeResult.
        error: set once the request cannot be answered any more.
    """

    request: ChatRequest
    arm: Arm
    snapshot: Snapshot
    prior: Beliefs = _NOTHING
    beliefs: Beliefs = _NOTHING
    reading: Reading | None = None
    candidates: Candidates = field(init=False)
    led: dict[str, tuple[Quote, float]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    live: bool = True
    traces: Traces = field(default_factory=Untraced)
    committed: bool = False
    released: int = 0
    baseline: Cost | None = None
    error: CascadeError | None = None
    _began: float = field(default_factory=time.perf_counter)
    _started_at: float = field(default_factory=time.time)
    _call: Call | None = None
    _held: dict[int, Call] = field(default_factory=dict)
    _answering: int = -1
    _estimating: tuple[str, float] | None = None
    _judging_since: float | None = None

    def __post_init__(self) -> None:
        self.candidates = Candidates(steps=self.arm.policy.steps)

    @property
    def elapsed(self) -> float:
        """Seconds since the request began."""
        return time.perf_counter() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Until the client's deadline; None without one."""
        budget = self.request.budget
        if budget is None or budget.seconds is None:
            return None
        return max(0.0, budget.seconds - self.elapsed)

    @property
    def current(self) -> Attempt:
        """The answer attempt made last."""
        return self.attempts[self._answering]

    @property
    def prompt(self) -> Prompt:
        """What the tier that is asked reads."""
        if self.reading is None:
            raise AssertionError("nothing was read of the request")
        return self.reading.prompts[self.current.step.tier]

    @property
    def completion(self) -> Completion | None:
        """The answer that the policy took, if the request can still be answered with it."""
        accepted = self.plan.accept
        return None if accepted is None or self.error else self.attempts[accepted].completion

    def note_leads(self) -> None:
        """The policy has said how its tiers stand to each other."""
        for tier, lead in self.plan.leads.items():
            if tier in self.candidates.quotes:
                before = self.led.get(tier)
                most = lead if before is None else max(lead, before[1])
                self.led[tier] = (self.candidates.quotes[tier], most)

    def hold_to_budget(self) -> None:
        """Leave out the tiers whose next call does not fit into what the client allows."""
        if self.request.budget is not None:
            self.candidates.hold_to(self.request.budget, self.attempts, self.elapsed)

    def estimating(self, asks: str | None) -> None:
        """The estimator is at work; asks is the tier whose model it asks, if it asks one."""
        self._estimating = None if asks is None else (asks, self.elapsed)

    def estimated(self, cost: Cost | None, error: EstimatorError | None = None) -> None:
        """The estimator is done or has failed; what it asked a model is an attempt of its own."""
        failed: dict[str, Any] = {}
        if error is not None:
            failed = {"outcome": Outcome.ESTIMATE_ERROR, "error": failure(error)}
            failed |= {"usage_estimated": error.estimated}
        self._estimate_attempt(cost=cost, **failed)

    def _estimate_attempt(self, **known: Any) -> None:
        asked, self._estimating = self._estimating, None
        if asked is not None:
            tier, since = asked
            self._aside(
                Kind.ESTIMATE,
                Step(tier=tier),
                "says before any call which tier will do",
                since,
                known,
            )

    def start(self, step: Step, tier: ModelTier, *, held: bool) -> Call:
        """A tier is about to be asked; its answer waits for a judge or goes out as it comes."""
        self._answering = len(self.attempts)
        quote = self.candidates.quotes.get(step.tier)
        gate = ToolCallGate(self.request.tools)
        call = self._call = Call(tier=tier, quote=quote, gate=gate, held=held)
        if held:
            self._held[self._answering] = call
        self.attempts.append(
            Attempt(
                index=self._answering,
                kind=Kind.ANSWER,
                step=step,
                reason=self.plan.reason,
                quote=quote,
                started=call.began - self._began,
            )
        )
        return call

    def answer(self, completion: Completion) -> Attempt:
        """The answer came in whole."""
        call = self._under_way()
        cost = call.tier.price(completion.usage)
        self._end(
            completion=completion,
            cost=None if completion.unreported_tries else cost,
            queued_seconds=completion.queued_seconds,
            cold_premium=call.tier.cold_premium(completion.usage, cost),
        )
        return self.current

    def fail(self, error: BackendError | DeadlineError) -> Attempt:
        """The tier failed or took too long; after text was released, so did the request."""
        cut = self._under_way().cut(error if isinstance(error, BackendError) else None)
        outcome = Outcome.INVALID if isinstance(error, _INVALID) else Outcome.BACKEND_ERROR
        if isinstance(error, DeadlineError):
            outcome = Outcome.CANCELLED
        queued = error.queued_seconds if isinstance(error, BackendError) else None
        self._end(outcome=outcome, error=failure(error), queued_seconds=queued, **cut._asdict())
        if self.committed:
            self.error = StreamBrokenError(
                f"{self.current.step.tier} broke off after {self.released} characters: "
                f"{error.message}"
            )
        return self.current

    def looked(self, look: EarlyLook, said: Verdict | JudgeError) -> Iterator[Delta]:
        """A judge looked at the start of the answer: the pieces to release if it was sure."""
        rule, call = look.rule, self._under_way()
        verdict, error = (None, said) if isinstance(said, JudgeError) else (said, None)
        score = verdict.score if verdict else None
        sure = rule.met_by(score)
        outcome = Outcome.ACCEPTED if sure else Outcome.REJECTED
        step = replace(self.current.step, judge=rule.judge or self.current.step.judge, commit=None)
        known = {
            "outcome": Outcome.JUDGE_ERROR if error else outcome,
            "verdict": verdict,
            "threshold": rule.at,
            "error": failure(error) if error else None,
            "cost": said.cost,
        }
        reason = (
            f"looks at the first {rule.after_tokens} tokens of attempt {self._answering}, to "
            f"release it from {rule.at:.3f} on: {'released' if sure else 'held'}"
        )
        self._aside(Kind.JUDGE, step, reason, look.began - self._began, known)
        if score is not None and sure:
            note = Commit(judge=str(step.judge), tokens=rule.after_tokens, score=score, at=rule.at)
            self._set(commit=note)
            del self._held[self._answering]
            for chunk, choices in call.let_go():
                yield self.release(step.tier, chunk, choices)

    def judging(self) -> None:
        """A judge looks at the answer."""
        self._judging_since = self.elapsed

    def judged(self, verdict: Verdict | None, error: JudgeError | None) -> None:
        """The judge spoke or failed."""
        spoke = verdict or error
        self._judge_attempt(
            outcome=Outcome.JUDGE_ERROR if error else None,
            verdict=verdict,
            error=failure(error) if error else None,
            cost=spoke.cost if spoke else None,
        )
        self._set(verdict=verdict)
        judged = [(a.step.tier, a.verdict) for a in self.attempts if a.kind is Kind.ANSWER]
        self.beliefs = self.arm.posterior.after(self.prior, judged)

    def _judge_attempt(self, **known: Any) -> None:
        """The judge's work is an attempt of its own."""
        since, self._judging_since = self._judging_since, None
        if since is None:
            raise AssertionError("no judge was asked")
        reason = f"judges attempt {self._answering}"
        self._aside(Kind.JUDGE, self.current.step, reason, since, known)

    def _aside(
        self, kind: Kind, step: Step, reason: str, since: float, known: Mapping[str, Any]
    ) -> None:
        """What was done beside the calls for an answer, at its end."""
        self.attempts.append(
            Attempt(
                index=len(self.attempts),
                kind=kind,
                step=step,
                reason=reason,
                started=since,
                seconds=self.elapsed - since,
                **known,
            )
        )

    def settle(self) -> Attempt | None:
        """The policy has spoken on the last answer: its outcome is known now."""
        if self._answering < 0 or self.current.outcome is not None:
            return None
        accepted = self.plan.accept == self._answering and not self.plan.steps
        self._set(
            outcome=Outcome.ACCEPTED if accepted else Outcome.REJECTED,
            threshold=self.plan.threshold,
        )
        return self.current

    def release_held(self) -> Iterator[Delta]:
        """What was held back of the accepted answer."""
        if self.plan.accept is None or not self.live:
            return
        tier = self.attempts[self.plan.accept].step.tier
        if (call := self._held.get(self.plan.accept)) is not None:
            for chunk in call.chunks:
                yield self.release(tier, chunk, chunk.choices)

    def interrupted(self, error: BaseException) -> CascadeResult:
        """The result when the client left, the service stops, or there is a bug."""
        left = isinstance(error, GeneratorExit | asyncio.CancelledError)
        self._estimate_attempt(
            outcome=Outcome.CANCELLED if left else Outcome.ESTIMATE_ERROR, cost=None
        )
        if self._judging_since is not None:
            self._judge_attempt(
                outcome=Outcome.CANCELLED if left else Outcome.JUDGE_ERROR, cost=None
            )
        if self._call is not None:
            self._end(outcome=Outcome.CANCELLED, **self._call.cut(None)._asdict())
        elif self._answering >= 0 and self.current.outcome is None:
            self._set(outcome=Outcome.CANCELLED)
        return replace(
            self.result(),
            completion=None,
            released_characters=self.released,
            cancelled=left,
            error=None if left else failure(error),
            reason="cancelled: the client left or the service stopped"
            if left
            else f"broke off: {type(error).__name__}",
        )

    def result(self) -> CascadeResult:
        """Everything that is known once the policy is done."""
        completion = self.completion
        waited = sum(attempt.seconds for attempt in self.attempts if _asked_a_model(attempt))
        seconds = self.elapsed
        error = self.error
        if error is None and completion is None:
            error = no_answer(
                self.candidates,
                self.attempts,
                late=self.seconds_left == 0.0,
                drained=self.snapshot.drained,
            )
        return CascadeResult(
            request=self.request,
            policy=self.arm.policy.name,
            config_version=self.snapshot.version,
            prices_version=self.snapshot.prices_version,
            experiment=self.arm.experiment,
            arm=self.arm.name,
            experiment_version=self.arm.version,
            beliefs=self.prior,
            fingerprint=self.reading.fingerprint if self.reading else None,
            attempts=tuple(self.attempts),
            completion=completion,
            cost=total([attempt.cost for attempt in self.attempts]),
            baseline=self.baseline,
            reason=self.plan.reason,
            degraded=self.plan.degraded,
            started_at=self._started_at,
            seconds=seconds,
            overhead_seconds=max(0.0, seconds - waited),
            released_characters=self.released if self.live else _length(completion),
            error=failure(error) if error else None,
        )

    def _under_way(self) -> Call:
        if self._call is None:
            raise AssertionError("no call is under way")
        return self._call

    def _end(self, **changes: Any) -> None:
        """The call is over."""
        call, self._call = self._under_way(), None
        self._set(
            seconds=time.perf_counter() - call.began,
            first_token_seconds=call.first_token_seconds,
            **changes,
        )

    def release(self, tier: str, chunk: Chunk, choices: Sequence[Json]) -> Delta:
        """A piece of the answer goes out; what went to the client cannot be taken back."""
        self.committed = True
        self.released += characters(choices)
        model = chunk.model or tier
        return Delta(tier=tier, model=model, choices=presented(self.request, choices))

    def _set(self, **changes: Any) -> None:
        self.attempts[self._answering] = changed(self.current, **changes)


def _asked_a_model(attempt: Attempt) -> bool:
    """A judge that costs nothing for sure has asked none."""
    return attempt.kind is not Kind.JUDGE or attempt.cost is None or attempt.cost.total > 0


def _length(answer: Completion | None) -> int:
    return sum(len(choice.text) for choice in answer.choices) if answer else 0
