"""The record of one request under way: the only thing that changes while it is answered.

The engine decides what happens next; this keeps what happened, so that whatever ends a request (an
answer, a failure, a client that leaves, a bug) there is a result to audit.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from cascade import posterior
from cascade.answers import assemble, characters, has_content, presented
from cascade.errors import (
    BackendError,
    BackendRefusedError,
    CascadeError,
    JudgeError,
    NoAnswerError,
    NoFitError,
    StreamBrokenError,
)
from cascade.experiments import Arm
from cascade.result import CascadeResult, Delta
from cascade.types import (
    FREE,
    Attempt,
    Beliefs,
    ChatRequest,
    Chunk,
    Completion,
    Cost,
    Failure,
    Kind,
    Outcome,
    Plan,
    Quote,
    Step,
    Verdict,
    total,
)


@dataclass(slots=True, kw_only=True)
class Run:
    """One request under way.

    Attributes:
        prior: what was believed before any call.
        beliefs: the same after the verdicts so far.
        quotes: of the tiers that can serve the request.
        unfit: why the others cannot, by tier.
        current: the answer attempt made last.
        committed: whether anything was released to the client.
        released: characters released.
        error: set once the request cannot be answered any more.
    """

    request: ChatRequest
    arm: Arm
    config_version: str
    prior: Beliefs = field(default_factory=lambda: Beliefs(mean={}))
    beliefs: Beliefs = field(default_factory=lambda: Beliefs(mean={}))
    quotes: dict[str, Quote] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    committed: bool = False
    released: int = 0
    error: CascadeError | None = None
    _began: float = field(default_factory=time.perf_counter)
    _started_at: float = field(default_factory=time.time)
    _chunks: list[Chunk] = field(default_factory=list)
    _held: dict[int, list[Chunk]] = field(default_factory=dict)
    _answering: int = -1

    @property
    def elapsed(self) -> float:
        """Seconds since the request began."""
        return time.perf_counter() - self._began

    @property
    def current(self) -> Attempt:
        """The answer attempt made last."""
        return self.attempts[self._answering]

    def left_out(self) -> str:
        """Why tiers of the policy are not asked; empty when all of them may be."""
        wanted = dict.fromkeys(step.tier for step in self.arm.policy.steps)
        return "; ".join(f"{name} {self.unfit[name]}" for name in wanted if name in self.unfit)

    def start(self, step: Step, *, held: bool) -> Attempt:
        """A tier is about to be asked; its answer waits for a judge or goes out as it comes."""
        self._answering = len(self.attempts)
        self._chunks = []
        if held:
            self._held[self._answering] = self._chunks
        attempt = Attempt(
            index=self._answering,
            kind=Kind.ANSWER,
            step=step,
            reason=self.plan.reason,
            quote=self.quotes.get(step.tier),
            started=self.elapsed,
        )
        self.attempts.append(attempt)
        return attempt

    def take(self, chunk: Chunk) -> Delta | None:
        """A piece of the answer came: keep it, and return it if it goes out at once."""
        finishing = any(piece.get("finish_reason") for piece in chunk.choices)
        if not has_content(chunk.choices) and not finishing:
            return None
        if self.current.first_token_seconds is None:
            self._set(first_token_seconds=self.elapsed - self.current.started)
        self._chunks.append(chunk)
        held = self._answering in self._held
        return None if held else self._release(self.current.step.tier, chunk)

    def answer(
        self, completion: Completion, cost: Cost | None, cold_premium: Decimal | None
    ) -> None:
        """The answer came in whole."""
        self._set(
            completion=completion,
            cost=None if completion.unreported_tries else cost,
            cold_premium=cold_premium,
            seconds=self.elapsed - self.current.started,
        )

    def fail(self, error: BackendError) -> Attempt:
        """The tier failed; after text was released, so did the request."""
        refused = isinstance(error, BackendRefusedError)
        outcome = Outcome.INVALID if refused else Outcome.BACKEND_ERROR
        self._break_off(outcome, may_have_cost=error.may_have_cost)
        self._set(error=failure(error))
        if self.committed:
            self.error = StreamBrokenError(
                f"{self.current.step.tier} broke off after {self.released} characters: "
                f"{error.message}"
            )
        return self.current

    def judging(self) -> None:
        """A judge looks at the answer: an attempt of its own, whose cost is not known yet."""
        self.attempts.append(
            Attempt(
                index=len(self.attempts),
                kind=Kind.JUDGE,
                step=self.current.step,
                reason=f"judges attempt {self._answering}",
                cost=None,
                started=self.elapsed,
            )
        )

    def judged(self, verdict: Verdict | None, error: JudgeError | None) -> None:
        """The judge spoke or failed."""
        judge = self.attempts[-1]
        spoke = verdict or error
        self.attempts[-1] = replace(
            judge,
            outcome=Outcome.JUDGE_ERROR if error else None,
            verdict=verdict,
            error=failure(error) if error else None,
            cost=spoke.cost if spoke else None,
            seconds=self.elapsed - judge.started,
        )
        self._set(verdict=verdict)
        self.beliefs = posterior.update(self.beliefs, self.current.step.tier, verdict)

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
        if self.plan.accept is None:
            return
        tier = self.attempts[self.plan.accept].step.tier
        for chunk in self._held.get(self.plan.accept, ()):
            yield self._release(tier, chunk)

    def interrupted(self, error: BaseException) -> CascadeResult:
        """The result when the client left, the service stops, or there is a bug."""
        left = isinstance(error, GeneratorExit | asyncio.CancelledError)
        last = self.attempts[-1] if self.attempts else None
        if last is not None and last.kind is Kind.JUDGE and not (last.verdict or last.error):
            outcome = Outcome.CANCELLED if left else Outcome.JUDGE_ERROR
            seconds = self.elapsed - last.started
            self.attempts[-1] = replace(last, outcome=outcome, seconds=seconds)
        if self._answering >= 0 and self.current.outcome is None:
            if self.current.completion is None:
                self._break_off(Outcome.CANCELLED, may_have_cost=True)
            else:
                self._set(outcome=Outcome.CANCELLED)
        return replace(
            self.result(),
            completion=None,
            cancelled=left,
            error=None if left else failure(error),
            reason="cancelled: the client left or the service stopped"
            if left
            else f"broke off: {type(error).__name__}",
        )

    def result(self) -> CascadeResult:
        """Everything that is known once the policy is done."""
        accepted = None if self.plan.accept is None else self.attempts[self.plan.accept]
        completion = accepted.completion if accepted and self.error is None else None
        waited = sum(a.seconds for a in self.attempts if a.kind is Kind.ANSWER)
        seconds = self.elapsed
        error = self.error or (None if completion else self._no_answer())
        return CascadeResult(
            request=self.request,
            policy=self.arm.policy.name,
            config_version=self.config_version,
            experiment=self.arm.experiment,
            arm=self.arm.name,
            beliefs=self.prior,
            attempts=tuple(self.attempts),
            completion=completion,
            cost=total([attempt.cost for attempt in self.attempts]),
            reason=self.plan.reason,
            degraded=self.plan.degraded,
            started_at=self._started_at,
            seconds=seconds,
            overhead_seconds=max(0.0, seconds - waited),
            released_characters=self.released,
            error=failure(error) if error else None,
        )

    def _no_answer(self) -> CascadeError:
        if not self.attempts and (left_out := self.left_out()):
            return NoFitError(f"no tier can serve this request: {left_out}")
        failures = [a for a in self.attempts if a.kind is Kind.ANSWER and a.error is not None]
        told = "; ".join(f"{a.step.tier}: {a.error.message}" for a in failures if a.error)
        last = failures[-1].error if failures else None
        message = f"no model answered ({told})"
        if last is None:
            return NoAnswerError(message)
        return NoAnswerError(message, status=last.status, retry_after=last.retry_after)

    def _break_off(self, outcome: Outcome, *, may_have_cost: bool) -> None:
        """The current call ended before its answer was whole; what came so far is kept as partial.

        What a cut call cost was not reported, so it is unknown, unless it cannot have cost a thing.
        """
        partial = None
        if self._chunks:
            partial = Completion(
                choices=assemble(chunk.choices for chunk in self._chunks),
                tier=self.current.step.tier,
                partial=True,
            )
        self._set(
            outcome=outcome,
            completion=partial,
            cost=None if partial or may_have_cost else FREE,
            seconds=self.elapsed - self.current.started,
        )

    def _release(self, tier: str, chunk: Chunk) -> Delta:
        self.committed = True
        self.released += characters(chunk.choices)
        model = chunk.model or tier
        return Delta(tier=tier, model=model, choices=presented(self.request, chunk.choices))

    def _set(self, **changes: object) -> None:
        self.attempts[self._answering] = replace(self.current, **changes)  # type: ignore[arg-type]


def failure(error: BaseException) -> Failure:
    """An error as a value."""
    if isinstance(error, CascadeError):
        return Failure(
            type=type(error).__name__,
            message=error.message,
            status=error.status,
            code=error.code,
            retry_after=error.retry_after,
        )
    return Failure(type=type(error).__name__, message=str(error), status=500)
