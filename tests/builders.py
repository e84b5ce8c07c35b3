"""Values of the domain for tests: each builder gives a plausible one, and takes what matters."""

import uuid
from decimal import Decimal
from typing import Any

from cascade.quote import Quote
from cascade.result import CascadeResult
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Choice,
    Completion,
    Cost,
    Failure,
    Kind,
    Outcome,
    Step,
    Usage,
    Verdict,
)


def request(**overrides: Any) -> ChatRequest:
    values = {
        "id": uuid.uuid4().hex,
        "model": "auto",
        "messages": [{"role": "user", "content": "What is 17 + 25?"}],
        "session": "s-1",
        "unit": "s-1",
        "tags": {"team": "search"},
    }
    return ChatRequest(**{**values, **overrides})


def usage(**overrides: Any) -> Usage:
    values = {"input": 40, "cache_read": 60, "cache_write": None, "output": 12, "reasoning": None}
    return Usage(**{**values, **overrides})


def cost(dollars: str = "0.00000172") -> Cost:
    return Cost(input=Decimal(dollars))


def completion(text: str = "42", **overrides: Any) -> Completion:
    values = {
        "choices": (Choice(text=text, finish_reason="stop"),),
        "tier": "small",
        "model": "qwen2.5-coder-0.5b",
        "replica": "127.0.0.1:8101",
        "usage": usage(),
    }
    return Completion(**{**values, **overrides})


def verdict(score: float | None = 0.9, **overrides: Any) -> Verdict:
    values = {
        "judge": "logprob",
        "score": score,
        "features": {"mean_logprob": -0.105, "min_logprob": -1.5},
        "reason": "the mean token was given a probability of 0.9",
    }
    return Verdict(**{**values, **overrides})


def attempt(index: int = 0, **overrides: Any) -> Attempt:
    """A call of the small tier, accepted unseen."""
    tier = overrides.pop("tier", "small")
    values = {
        "index": index,
        "kind": Kind.ANSWER,
        "step": Step(tier=tier),
        "reason": "the first step of the ladder",
        "quote": Quote(tier=tier, dollars=Decimal("0.000002")),
        "outcome": Outcome.ACCEPTED,
        "completion": completion(tier=tier),
        "cost": cost(),
        "cold_premium": Decimal("0.000001"),
        "started": 0.002,
        "seconds": 0.2,
        "first_token_seconds": 0.05,
    }
    return Attempt(**{**values, **overrides})


def failed(index: int = 0, **overrides: Any) -> Attempt:
    """A call that could not be made."""
    fault = Failure(type="BackendConnectionError", message="connection refused", status=503)
    values = {
        "outcome": Outcome.BACKEND_ERROR,
        "completion": None,
        "error": fault,
        "cold_premium": None,
        "first_token_seconds": None,
    }
    return attempt(index, **{**values, **overrides})


def result(request_id: str | None = None, **overrides: Any) -> CascadeResult:
    """A request that the small tier answered at once."""
    attempts = overrides.get("attempts", (attempt(),))
    asked = {"model": overrides.pop("requested_model", "auto")}
    asked |= {"id": request_id} if request_id else {}
    costs = [each.cost for each in attempts]
    values = {
        "request": request(**asked),
        "policy": "default",
        "config_version": "c0ffee",
        "experiment": "auto",
        "arm": "cascade",
        "beliefs": Beliefs(mean={"small": 0.41, "large": 0.78}, features={"length": 16.0}),
        "attempts": attempts,
        "completion": next((a.completion for a in attempts if a.outcome is Outcome.ACCEPTED), None),
        "cost": None if None in costs else sum(costs, Cost()),
        "reason": "small is not judged",
        "started_at": 1_790_000_000.25,
        "seconds": 0.21,
        "overhead_seconds": 0.003,
        "released_characters": 2,
    }
    return CascadeResult(**{**values, **overrides})


def escalated(request_id: str | None = None, **overrides: Any) -> CascadeResult:
    """A request whose first answer the judge doubted, so that the large tier answered."""
    step = Step(tier="small", judge="logprob")
    doubt = verdict(0.412)
    attempts = (
        attempt(0, step=step, outcome=Outcome.REJECTED, verdict=doubt, threshold=0.7),
        attempt(
            1,
            kind=Kind.JUDGE,
            step=step,
            reason="judges attempt 0",
            outcome=None,
            completion=None,
            verdict=doubt,
            cost=Cost(),
            quote=None,
            cold_premium=None,
            started=0.202,
            seconds=0.001,
            first_token_seconds=None,
        ),
        attempt(
            2,
            tier="large",
            reason="logprob gives small's answer 0.412, which is below 0.700",
            completion=completion(tier="large", model="qwen2.5-coder-1.5b"),
            cost=cost("0.0000344"),
            started=0.204,
            seconds=0.6,
        ),
    )
    values = {"attempts": attempts, "reason": "large is not judged", "seconds": 0.81}
    return result(request_id, **{**values, **overrides})
