"""What a result is as spans: one of the request, and below it one of every call it made.

The names are those of OpenTelemetry's semantic conventions for generative AI, as its package of
conventions has them; what those have no name for begins with `cascade.`. Neither prompts nor
answers are in them, nor what a judge says of an answer, as it may quote from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from cascade.audit import status_of
from cascade.result import CascadeResult
from cascade.types import Attempt, Kind, Outcome, Usage

Value = str | bool | int | float | Sequence[str]

_FAILED = {"error", "cancelled"}
_FAULTS = frozenset(
    {Outcome.BACKEND_ERROR, Outcome.JUDGE_ERROR, Outcome.ESTIMATE_ERROR, Outcome.INVALID}
)
_ASKS = frozenset({Kind.ANSWER, Kind.SAMPLE, Kind.SHADOW, Kind.PREWARM, Kind.ESTIMATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spanned:
    """One span.

    Attributes:
        began: seconds since the epoch.
        seconds: how long it took.
        remote: whether it is a call to somebody else.
        fault: why it failed, in a word and in a sentence; None when it did not.
        first_token_seconds: until the first piece of the answer; None when none came.
    """

    name: str
    began: float
    seconds: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    remote: bool = False
    fault: tuple[str, str] | None = None
    first_token_seconds: float | None = None


def of_request(result: CascadeResult) -> Spanned:
    """The span that all others are within."""
    request, answer, status = result.request, result.completion, status_of(result)
    fault = None
    if status in _FAILED:
        error = result.error
        fault = (error.code or error.type, error.message) if error else (status, result.reason)
    return Spanned(
        name=f"chat {request.model}",
        began=result.started_at,
        seconds=result.seconds,
        fault=fault,
        attributes=_known(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "cascade",
                "gen_ai.request.model": request.model,
                "gen_ai.response.model": answer.model if answer else None,
                "gen_ai.conversation.id": request.session or None,
                "cascade.request_id": request.id,
                "cascade.status": status,
                "cascade.policy": result.policy,
                "cascade.experiment": result.experiment,
                "cascade.arm": result.arm,
                "cascade.tier": answer.tier if answer else None,
                "cascade.answers": result.answers,
                "cascade.reason": result.reason,
                "cascade.tenant": request.tenant,
                "cascade.config_version": result.config_version,
                "cascade.cost_usd": _dollars(result.cost.total if result.cost else None),
                "cascade.baseline_usd": _dollars(
                    result.baseline.total if result.baseline else None
                ),
                "cascade.overhead_ms": result.overhead_seconds * 1e3,
            }
        ),
    )


def of_shadows(result: CascadeResult, calls: Sequence[Attempt]) -> Spanned:
    """The span that all calls are within which were made for a request after its answer."""
    request = result.request
    began = min(call.started for call in calls)
    return Spanned(
        name=f"shadow {request.model}",
        began=result.started_at + began,
        seconds=max(call.started + call.seconds for call in calls) - began,
        attributes=_known(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "cascade",
                "gen_ai.request.model": request.model,
                "gen_ai.conversation.id": request.session or None,
                "cascade.request_id": request.id,
                "cascade.tenant": request.tenant,
                "cascade.config_version": result.config_version,
            }
        ),
    )


def of_attempts(
    result: CascadeResult, attempts: Sequence[Attempt], providers: Mapping[str, str]
) -> Iterator[Spanned]:
    """One span for each call that was made, judges' work included.

    Args:
        result: of the request.
        attempts: its own, or those that were made after its answer.
        providers: who serves each tier, in the words of the conventions.
    """
    for attempt in attempts:
        judges = _judges(attempt)
        yield Spanned(
            name=_name(attempt),
            began=result.started_at + attempt.started,
            seconds=attempt.seconds,
            remote=attempt.kind in _ASKS and not judges,
            fault=_fault(attempt),
            first_token_seconds=attempt.first_token_seconds,
            attributes=_known(
                {
                    "cascade.attempt.index": attempt.index,
                    "cascade.attempt.kind": attempt.kind.value,
                    "cascade.attempt.outcome": attempt.outcome.value if attempt.outcome else None,
                    "cascade.tier": attempt.step.tier,
                    "cascade.reason": attempt.reason,
                    "cascade.cost_usd": _dollars(attempt.cost.total if attempt.cost else None),
                    "cascade.propensity": attempt.propensity,
                    **(_evaluation(attempt) if judges else _call(attempt, providers)),
                }
            ),
        )


def _judges(attempt: Attempt) -> bool:
    """Whether it looks at an answer; after the request's own, the call for one has no judge."""
    shadow = attempt.kind is Kind.SHADOW and attempt.step.judge is not None
    return attempt.kind is Kind.JUDGE or shadow


def _name(attempt: Attempt) -> str:
    if _judges(attempt):
        return f"evaluate {attempt.step.judge}"
    answer = attempt.completion
    return f"chat {answer.model if answer and answer.model else attempt.step.tier}"


def _fault(attempt: Attempt) -> tuple[str, str] | None:
    error = attempt.error
    if error is None:
        return None if attempt.outcome not in _FAULTS else (str(attempt.outcome), attempt.reason)
    return error.code or error.type, error.message


def _call(attempt: Attempt, providers: Mapping[str, str]) -> dict[str, Value | None]:
    answer, quote = attempt.completion, attempt.quote
    reasons = [answer.finish_reason] if answer and answer.finish_reason else None
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": providers.get(attempt.step.tier, "unknown"),
        "gen_ai.request.model": attempt.step.tier,
        "gen_ai.response.model": answer.model if answer else None,
        "gen_ai.response.finish_reasons": reasons,
        "gen_ai.response.time_to_first_chunk": attempt.first_token_seconds,
        **_tokens(answer.usage if answer else Usage()),
        "cascade.replica": answer.replica if answer else None,
        "cascade.usage_estimated": attempt.usage_estimated,
        "cascade.queued_ms": _ms(attempt.queued_seconds),
        "cascade.quoted_usd": _dollars(quote.dollars if quote else None),
        "cascade.cold_premium_usd": _dollars(attempt.cold_premium),
        "cascade.warm_tokens": quote.warm_tokens if quote else None,
    }


def _tokens(usage: Usage) -> dict[str, Value | None]:
    """In the conventions the input includes what was read from and written to a cache."""
    writes = usage.cache_write
    written = None if writes is None else sum(writes.values())
    return {
        "gen_ai.usage.input_tokens": usage.prompt,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }


def _evaluation(attempt: Attempt) -> dict[str, Value | None]:
    verdict = attempt.verdict
    return {
        "gen_ai.evaluation.name": attempt.step.judge,
        "gen_ai.evaluation.score.value": verdict.score if verdict else None,
        "cascade.threshold": attempt.threshold,
    }


def _known(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """What is not known is left out: a zero would be counted."""
    return {name: value for name, value in values.items() if value is not None}


def _dollars(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
