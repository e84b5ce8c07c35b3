"""How one answer came about, for the client that asked: the decision, its numbers, every attempt.

It is what the audit log keeps of the request, under the same names, without the prompt or anything
of the answers. Money is in decimal strings of dollars; what is not known is null.
"""

from decimal import Decimal
from typing import Any

from cascade.audit import PICO
from cascade.quote import Quote
from cascade.result import CascadeResult
from cascade.types import Attempt, Budget, Cost, Failure, Usage
from serving.control import FIELD


def explained(result: CascadeResult, *, asked: bool) -> dict[str, Any]:
    """What goes into a body beside the answer or the error: nothing, unless it was asked for."""
    return {FIELD: explanation(result)} if asked else {}


def explanation(result: CascadeResult) -> dict[str, Any]:
    """The `cascade` object of an answer or of an error."""
    request, answer, beliefs = result.request, result.completion, result.beliefs
    return {
        "request_id": request.id,
        "requested_model": request.model,
        "experiment": result.experiment,
        "arm": result.arm,
        "experiment_version": result.experiment_version,
        "policy": result.policy,
        "config_version": result.config_version,
        "tier": answer.tier if answer else None,
        "model": answer.model if answer else None,
        "reason": result.reason,
        "degraded": result.degraded,
        "cost_usd": _total(result.cost),
        "cost_estimated": estimated(result),
        "baseline_usd": _total(result.baseline),
        "overhead_ms": round(result.overhead_seconds * 1e3, 3),
        "seconds": _seconds(result.seconds),
        "beliefs": dict(beliefs.mean) if beliefs else None,
        "belief_flags": sorted(beliefs.flags) if beliefs else [],
        "budget": _budget(request.budget),
        "attempts": [_attempt(attempt) for attempt in result.attempts],
    }


def estimated(result: CascadeResult) -> bool:
    """Whether the cost is known and rests in part on tokens that no model reported."""
    return result.cost is not None and any(each.usage_estimated for each in result.attempts)


def dollars(amount: Decimal | None) -> str | None:
    """Dollars in plain decimal notation; None when they are not known."""
    return None if amount is None else f"{amount:f}"


def _total(cost: Cost | None) -> str | None:
    return dollars(cost.total) if cost else None


def _seconds(seconds: float | None) -> float | None:
    """To the microsecond, which is as far as clocks are worth reading."""
    return None if seconds is None else round(seconds, 6)


def _budget(budget: Budget | None) -> dict[str, Any] | None:
    """The limits in the words they were stated in."""
    if budget is None:
        return None
    return {
        "max_cost_usd": dollars(budget.dollars),
        "min_quality": budget.quality,
        "deadline_ms": None if budget.seconds is None else round(budget.seconds * 1e3, 3),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    answer, verdict, quote = attempt.completion, attempt.verdict, attempt.quote
    return {
        "index": attempt.index,
        "kind": attempt.kind.value,
        "tier": attempt.step.tier,
        "model": answer.model if answer else None,
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "reason": attempt.reason,
        "judge": attempt.step.judge,
        "score": verdict.score if verdict else None,
        "threshold": attempt.threshold,
        "verdict_reason": verdict.reason if verdict else None,
        "cost_usd": _total(attempt.cost),
        "usage_estimated": attempt.usage_estimated,
        "cold_premium_usd": dollars(attempt.cold_premium),
        **_quoted(quote),
        "expected_seconds": _seconds(quote.seconds) if quote else None,
        "seconds": _seconds(attempt.seconds),
        "first_token_seconds": _seconds(attempt.first_token_seconds),
        "tries": answer.tries if answer else None,
        "tokens": _tokens(answer.usage) if answer else None,
        "error": _error(attempt.error) if attempt.error else None,
    }


def _quoted(quote: Quote | None) -> dict[str, Any]:
    """What was expected of a call, and the price that it was decided by, its bill less the credit.

    To the picodollar, as the last two are estimates.
    """
    if quote is None:
        names = ("quoted_usd", "credit_usd", "decision_price_usd", "warm_tokens", "cold_tokens")
        return dict.fromkeys(names)
    priced = quote.dollars is not None
    return {
        "quoted_usd": dollars(quote.dollars),
        "credit_usd": _rounded(quote.credit) if priced else None,
        "decision_price_usd": None if quote.price is None else _rounded(Decimal(quote.price)),
        "warm_tokens": quote.warm_tokens,
        "cold_tokens": quote.cold_tokens,
    }


def _rounded(amount: Decimal) -> str:
    exact = amount.quantize(1 / PICO).normalize()
    return f"{exact + 0:f}"


def _tokens(usage: Usage) -> dict[str, Any]:
    """The disjoint buckets that prices apply to."""
    return {
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": None if usage.cache_write is None else dict(usage.cache_write),
        "output": usage.output,
        "reasoning": usage.reasoning,
    }


def _error(failure: Failure) -> dict[str, Any]:
    return {"type": failure.type, "message": failure.message, "status": failure.status}
