"""What the audit log keeps of a request: flat rows of plain values, without the prompt's text.

Where prompts are to be kept as well, somebody else says in which form, and nothing else in a row is
made of them. The rows carry what is needed to explain the decision and to ask later what another
policy would have done: beliefs, scores, thresholds, features, tokens by bucket and money. Money is
kept in integer pico-dollars (10^-12), so that a token's price of a fraction of a millionth adds up
exactly.
"""

import hashlib
import json
import struct
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from cascade.embedding import Embedding
from cascade.prefix import Fingerprint
from cascade.result import CascadeResult
from cascade.types import Attempt, Beliefs, ChatRequest, Cost, Usage

PICO = Decimal(10) ** 12

_PRIORS = frozenset({"fallback", "no_estimator"})
"""Flags of beliefs that are the same for every request."""


class Prompts(Protocol):
    """What is kept of what was asked and answered.

    Attributes:
        form: none, hash, redacted or full.
        hash_key: goes into every hash of a prompt; empty without one.
    """

    @property
    def form(self) -> str:
        """In which form."""
        ...

    @property
    def hash_key(self) -> bytes:
        """A secret, without which nobody can try whether a hash is of a text."""
        ...

    def texts(self, result: CascadeResult) -> tuple[str | None, str | None]:
        """Of the prompt and of the answer, as they are kept; None where nothing is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unkept:
    """No text is kept; with the form `none`, no hash of it either."""

    form: str = "hash"
    hash_key: bytes = field(default=b"", repr=False)

    def texts(self, result: CascadeResult) -> tuple[None, None]:
        """Neither."""
        del result
        return None, None


HASHED = Unkept()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt, judge calls included. Times are milliseconds; None is not known.

    `quoted_pico`, `warm_tokens`, `cold_tokens`, `expected_output_tokens` and `credit_pico` are what
    was expected before the call; the rest is what came of it.
    """

    request_id: str
    index: int
    kind: str
    tier: str
    replica: str | None
    model: str | None
    outcome: str | None
    reason: str
    judge: str | None
    score: float | None
    threshold: float | None
    verdict_reason: str | None
    features: Mapping[str, float] | None
    finish_reason: str | None
    partial: bool
    input_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cache_write_by_ttl: Mapping[str, int] | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_pico: int | None
    input_cost_pico: int | None
    cache_read_cost_pico: int | None
    cache_write_cost_pico: int | None
    output_cost_pico: int | None
    usage_estimated: bool
    tries: int | None
    cold_premium_pico: int | None
    quoted_pico: int | None
    warm_tokens: int | None
    cold_tokens: int | None
    expected_output_tokens: int | None
    credit_pico: int | None
    quote_estimated: bool | None
    propensity: float | None
    started_ms: float
    duration_ms: float
    first_token_ms: float | None
    error_type: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One request with its attempts. status: ok, degraded, cancelled or error.

    `key_id` is a short hash of the key that the client sent. `difficulty` is the probability that
    the tier least likely to do, which is the smallest one, does not do; None without an estimate of
    this request. `prompt_form` is what was kept of the prompt (None in rows of older versions,
    which kept its hash), `prompt_text` and `answer_text` are the texts in that form; `prompt_hash`
    is empty when not even that was kept.
    `embedding` is {"model": ..., "float16": base64 of little-endian halves}, where it is kept.
    `segments` are the prompt's, as hashes: a list of {"name", "tokens", "raw", "masked", "parts"}.
    """

    id: str
    created_at: float
    status: str
    requested_model: str
    experiment: str | None
    arm: str | None
    experiment_version: int | None
    policy: str
    config_version: str
    prices_version: str | None
    tenant: str
    key_id: str | None
    end_user: str | None
    session: str
    unit: str
    idempotency_hash: str | None
    tags: Mapping[str, str]
    prompt_hash: str
    prompt_messages: int
    prompt_form: str | None
    prompt_text: str | None
    answer_text: str | None
    segments: Sequence[Mapping[str, Any]] | None
    tier: str | None
    model: str | None
    reason: str
    answers: int
    beliefs: Mapping[str, float] | None
    belief_flags: Sequence[str]
    difficulty: float | None
    features: Mapping[str, float] | None
    embedding: Mapping[str, str] | None
    cost_pico: int | None
    baseline_pico: int | None
    duration_ms: float
    overhead_ms: float
    released_characters: int
    error_type: str | None
    error_message: str | None
    error_status: int | None
    attempts: Sequence[AttemptRecord]


def record(
    result: CascadeResult, *, embeddings: bool = False, prompts: Prompts = HASHED
) -> AuditRecord:
    """Flatten a result and leave the text out.

    Args:
        result: what became of a request.
        embeddings: keep the embedding of what was classified, if there is one.
        prompts: what to keep of the texts.
    """
    request, beliefs, error = result.request, result.beliefs, result.error
    return AuditRecord(
        id=request.id,
        created_at=result.started_at,
        status=status_of(result),
        requested_model=request.model,
        experiment=result.experiment,
        arm=result.arm,
        experiment_version=result.experiment_version,
        policy=result.policy,
        config_version=result.config_version,
        prices_version=result.prices_version or None,
        tenant=request.tenant,
        key_id=request.key_id or None,
        end_user=request.user or None,
        session=request.session,
        unit=request.unit,
        idempotency_hash=key_hash(request.idempotency_key),
        tags=dict(request.tags),
        **_prompt(result, prompts),
        tier=result.completion.tier if result.completion else None,
        model=result.completion.model if result.completion else None,
        reason=result.reason,
        answers=result.answers,
        beliefs=dict(beliefs.mean) if beliefs else None,
        belief_flags=sorted(beliefs.flags) if beliefs else [],
        difficulty=_difficulty(beliefs),
        features=dict(beliefs.features) if beliefs else None,
        embedding=_halves(beliefs.embedding) if beliefs and embeddings else None,
        cost_pico=pico(result.cost.total) if result.cost else None,
        baseline_pico=pico(result.baseline.total) if result.baseline else None,
        duration_ms=result.seconds * 1e3,
        overhead_ms=result.overhead_seconds * 1e3,
        released_characters=result.released_characters,
        error_type=error.type if error else None,
        error_message=error.message if error else None,
        error_status=error.status if error else None,
        attempts=[_attempt(request.id, attempt) for attempt in result.attempts],
    )


def late(request_id: str, attempts: Sequence[Attempt]) -> list[AttemptRecord]:
    """The rows of calls that were made once the request itself was recorded."""
    return [_attempt(request_id, attempt) for attempt in attempts]


def prompt_hash(request: ChatRequest, key: bytes = b"") -> str:
    """128-bit hash of messages and tools: equal prompts are found, none can be read.

    Args:
        request: whose prompt it is.
        key: a secret of up to 64 bytes, without which nobody can try a text.
    """
    text = json.dumps([request.messages, request.tools], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), key=key, digest_size=16).hexdigest()


def key_hash(key: str) -> str | None:
    """128-bit hash of an idempotency key, which may be anything a client made up; None for none."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest() if key else None


def pico(dollars: Decimal | None) -> int | None:
    """Dollars in whole pico-dollars."""
    return None if dollars is None else int((dollars * PICO).to_integral_value())


def status_of(result: CascadeResult) -> str:
    """What became of a request, in a word: ok, degraded, cancelled or error."""
    if result.cancelled:
        return "cancelled"
    if result.error is not None:
        return "error"
    return "degraded" if result.degraded else "ok"


def _prompt(result: CascadeResult, prompts: Prompts) -> dict[str, Any]:
    request, hashed = result.request, prompts.form != "none"
    prompt_text, answer_text = prompts.texts(result)
    return {
        "prompt_hash": prompt_hash(request, prompts.hash_key) if hashed else "",
        "prompt_messages": len(request.messages),
        "prompt_form": prompts.form,
        "prompt_text": prompt_text,
        "answer_text": answer_text,
        "segments": _segments(result.fingerprint) if hashed else None,
    }


def _difficulty(beliefs: Beliefs | None) -> float | None:
    """Of what was estimated; a prior says nothing of the request."""
    if beliefs is None or not beliefs.mean or beliefs.flags & _PRIORS:
        return None
    return 1.0 - min(beliefs.mean.values())


def _attempt(request_id: str, attempt: Attempt) -> AttemptRecord:
    completion, verdict, error = attempt.completion, attempt.verdict, attempt.error
    quote = attempt.quote
    usage = completion.usage if completion else Usage()
    cost = attempt.cost
    writes = usage.cache_write
    return AttemptRecord(
        request_id=request_id,
        index=attempt.index,
        kind=attempt.kind.value,
        tier=attempt.step.tier,
        replica=completion.replica if completion else None,
        model=completion.model if completion else None,
        outcome=attempt.outcome.value if attempt.outcome else None,
        reason=attempt.reason,
        judge=attempt.step.judge,
        score=verdict.score if verdict else None,
        threshold=attempt.threshold,
        verdict_reason=verdict.reason if verdict else None,
        features=dict(verdict.features) if verdict else None,
        finish_reason=completion.finish_reason if completion else None,
        partial=completion.partial if completion else False,
        input_tokens=usage.input,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=None if writes is None else sum(writes.values()),
        cache_write_by_ttl=None if writes is None else dict(writes),
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        **_costs(cost),
        usage_estimated=attempt.usage_estimated,
        tries=completion.tries if completion else None,
        cold_premium_pico=pico(attempt.cold_premium),
        quoted_pico=pico(quote.dollars) if quote else None,
        warm_tokens=quote.warm_tokens if quote else None,
        cold_tokens=quote.cold_tokens if quote else None,
        expected_output_tokens=quote.expected_output_tokens if quote else None,
        credit_pico=pico(quote.credit) if quote else None,
        quote_estimated=quote.estimated if quote else None,
        propensity=attempt.propensity,
        started_ms=attempt.started * 1e3,
        duration_ms=attempt.seconds * 1e3,
        first_token_ms=_ms(attempt.first_token_seconds),
        error_type=error.type if error else None,
        error_message=error.message if error else None,
    )


def _segments(fingerprint: Fingerprint | None) -> list[dict[str, Any]] | None:
    if fingerprint is None:
        return None
    return [
        {
            "name": segment.name,
            "tokens": segment.tokens,
            "raw": segment.raw,
            "masked": dict(segment.masked),
            "parts": list(segment.parts),
        }
        for segment in fingerprint.segments
    ]


def _halves(embedding: Embedding | None) -> dict[str, str] | None:
    """Two bytes a number: a fifth of what they take in JSON, and exact enough to train on."""
    if embedding is None:
        return None
    packed = struct.pack(f"<{len(embedding.vector)}e", *embedding.vector)
    return {"model": embedding.model, "float16": b64encode(packed).decode()}


def _costs(cost: Cost | None) -> dict[str, int | None]:
    return {
        "cost_pico": pico(cost.total) if cost else None,
        "input_cost_pico": pico(cost.input) if cost else None,
        "cache_read_cost_pico": pico(cost.cache_read) if cost else None,
        "cache_write_cost_pico": pico(cost.cache_write) if cost else None,
        "output_cost_pico": pico(cost.output) if cost else None,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
