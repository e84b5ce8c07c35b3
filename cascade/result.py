"""What the engine emits: events while a request is answered, and at the end its result."""

from collections.abc import Sequence
from dataclasses import dataclass

from cascade.prefix import Fingerprint
from cascade.types import FREE, Attempt, Beliefs, ChatRequest, Completion, Cost, Failure, Json, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeResult:
    """One request from beginning to end, also when nothing answered.

    Attributes:
        prices_version: hash of the price cards in force.
        experiment_version: of what overrides the experiment in the file; None: nothing does.
        beliefs: what was believed before any call; the verdicts are on the attempts.
        completion: the answer given; None when there is none.
        cost: of all attempts; None when any is unknown.
        baseline: what the dearest tier that could serve the request would have cost, its own warm
            prefix included; None when that is unknown.
        reason: why this answer was taken.
        overhead_seconds: time that was not spent waiting for models.
        released_characters: how much text the client had been sent.
        error: why there is no answer.
        fingerprint: the prompt's segments as hashes; None when none were taken.
    """

    request: ChatRequest
    policy: str
    config_version: str
    prices_version: str = ""
    experiment: str | None = None
    arm: str | None = None
    experiment_version: int | None = None
    beliefs: Beliefs | None = None
    attempts: Sequence[Attempt] = ()
    completion: Completion | None = None
    cost: Cost | None = FREE
    baseline: Cost | None = None
    reason: str = ""
    degraded: bool = False
    cancelled: bool = False
    started_at: float = 0.0
    seconds: float = 0.0
    overhead_seconds: float = 0.0
    released_characters: int = 0
    error: Failure | None = None
    fingerprint: Fingerprint | None = None

    @property
    def answers(self) -> int:
        """How many times a model was asked for the answer."""
        return sum(attempt.kind is Kind.ANSWER for attempt in self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    """A model is being asked."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of the answer that is committed: it comes from one model and is not taken back."""

    tier: str
    model: str
    choices: Sequence[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFinished:
    """An attempt has its outcome."""

    attempt: Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The last event: everything is known."""

    result: CascadeResult


Event = AttemptStarted | Delta | AttemptFinished | Finished
