"""An estimate without a model or data, for the first day: what a request looks like.

Longer asks, more numbers, code, several constraints and multi-step wording count as harder; each
tier's probability falls with difficulty from `easy` to `hard`. The weights are a plain guess, not
fitted; an analyst compares it with a trained classifier on the features kept in the audit log.
"""

import math
import re
from collections.abc import Mapping, Sequence

from cascade.errors import ConfigError
from cascade.types import Beliefs, ChatRequest
from classifiers.text import last_ask

_NUMBER = re.compile(r"\d+")
_CODE = re.compile(r"```|\bdef \w|\bclass \w|#include|;\s*$|=>|\bSELECT\b", re.MULTILINE)
_STEPS = re.compile(
    r"\b(prove|derive|explain why|step by step|compare|analy[sz]e"
    r"|design|refactor|debug|optimi[sz]e)\b",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"\d\s*[*\u00d7x]\s*\d|\b(times|multiplied|product of|divided by)\b", re.IGNORECASE
)
_CONSTRAINT = re.compile(
    r"\b(must|only|exactly|at least|at most|without|never|each)\b", re.IGNORECASE
)
_ENOUGH_CHARACTERS = 2_000

WEIGHTS: Mapping[str, float] = {
    "bias": -2.0,
    "log_characters": 0.25,
    "numbers": 0.1,
    "code": 0.8,
    "steps": 0.9,
    "product": 1.2,
    "constraints": 0.2,
    "turns": 0.05,
    "tools": 0.5,
}


class HeuristicEstimator:
    """Difficulty in [0, 1] from what the ask looks like; deterministic, microseconds.

    Args:
        name: how the audit log calls it.
        tiers: for each tier (easy, hard): its probability on the easiest and the hardest request.
    """

    def __init__(self, *, name: str = "heuristic", tiers: Mapping[str, Sequence[float]]) -> None:
        for tier, ends in tiers.items():
            if len(ends) != 2 or not 0.0 <= ends[1] <= ends[0] <= 1.0:  # noqa: PLR2004
                raise ConfigError(f"tier {tier!r}: give [easy, hard] with 1 >= easy >= hard >= 0")
        self.name = name
        self._tiers = {tier: (ends[0], ends[1]) for tier, ends in tiers.items()}

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[Beliefs]:
        """One Beliefs a request."""
        return [self._beliefs(request) for request in requests]

    def _beliefs(self, request: ChatRequest) -> Beliefs:
        features = features_of(request)
        logit = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in features.items())
        difficulty = 1.0 / (1.0 + math.exp(-logit))
        mean = {
            tier: easy + (hard - easy) * difficulty for tier, (easy, hard) in self._tiers.items()
        }
        return Beliefs(mean=mean, features={**features, "difficulty": difficulty})


def features_of(request: ChatRequest) -> dict[str, float]:
    """What the ask looks like, in numbers; a very long ask is read from its start."""
    ask = last_ask(request.messages)
    head = ask[:_ENOUGH_CHARACTERS]
    return {
        "log_characters": math.log1p(len(ask)),
        "numbers": float(min(20, len(_NUMBER.findall(head)))),
        "code": float(bool(_CODE.search(head))),
        "steps": float(bool(_STEPS.search(head))),
        "product": float(bool(_PRODUCT.search(head))),
        "constraints": float(min(10, len(_CONSTRAINT.findall(head)))),
        "turns": float(min(40, len(request.messages))),
        "tools": float(bool(request.tools)),
    }
