"""Counts one result: what was asked, what it used, what it cost and how long it waited."""

from itertools import pairwise

from cascade.audit import status_of
from cascade.result import CascadeResult
from cascade.types import Attempt, Completion, Kind, Outcome, Usage
from serving.metrics.families import Families

NO_OUTCOME = "done"
"""Of calls that are neither accepted nor rejected: a verdict, an estimate."""


def count(result: CascadeResult, families: Families) -> None:
    """Add a result to the metrics."""
    status = status_of(result)
    families.requests.labels(result.experiment or "", result.policy, status).inc()
    for attempt in result.attempts:
        count_attempt(attempt, families)
        if attempt.kind is Kind.ANSWER:
            _times(attempt, families)
            _tokens(attempt, families)
    answers = [each for each in result.attempts if each.kind is Kind.ANSWER]
    for before, after in pairwise(answers):
        if before.step.tier != after.step.tier:
            cause = "rejected" if before.outcome is Outcome.REJECTED else "failed"
            families.escalations.labels(before.step.tier, after.step.tier, cause).inc()


def count_aside(tier: str, answer: Completion, families: Families) -> None:
    """Add the tokens of a call that a judge or an estimator made; its cost is with the attempt."""
    _used(tier, answer.usage, families)


def count_attempt(attempt: Attempt, families: Families) -> None:
    """Add a call of any kind: what became of it and what it cost."""
    whose = (attempt.step.tier, attempt.kind.value)
    outcome = attempt.outcome.value if attempt.outcome else NO_OUTCOME
    families.attempts.labels(*whose, outcome).inc()
    if attempt.cost is None:
        families.cost_unknown.labels(*whose).inc()
    else:
        families.cost_usd.labels(*whose).inc(float(attempt.cost.total))
    if attempt.cold_premium is not None and attempt.cold_premium > 0:
        families.cold_premium_usd.labels(attempt.step.tier).inc(float(attempt.cold_premium))


def _times(attempt: Attempt, families: Families) -> None:
    tier = attempt.step.tier
    if attempt.first_token_seconds is not None:
        families.ttft_ms.labels(tier).observe(attempt.first_token_seconds * 1e3)
    if attempt.queued_seconds is not None:
        families.queue_wait_ms.labels(tier).observe(attempt.queued_seconds * 1e3)


def _tokens(attempt: Attempt, families: Families) -> None:
    """What the upstream said of an answer; estimates are left out."""
    if attempt.completion is not None:
        told = Usage() if attempt.usage_estimated else attempt.completion.usage
        _used(attempt.step.tier, told, families)


def _used(tier: str, usage: Usage, families: Families) -> None:
    if usage.prompt is not None:
        families.prefill_tokens.labels(tier).inc(usage.prompt)
    if usage.output is not None:
        families.decode_tokens.labels(tier).inc(usage.output + (usage.reasoning or 0))
    if usage.prompt is not None and usage.cache_read is not None:
        families.prefix_cache_hit_tokens.labels(tier).inc(usage.cache_read)
        families.prefix_cache_miss_tokens.labels(tier).inc(usage.prompt - usage.cache_read)
    else:
        families.prefix_cache_unreported.labels(tier).inc()
