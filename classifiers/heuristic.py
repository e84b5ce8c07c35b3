"""An estimate without a model or data, for the first day: what a request looks like.

Longer asks, more numbers, code, several constraints and multi-step wording count as harder, in
English and in Korean, and so does a session that had to go up lately; each tier's probability falls
with difficulty from `easy` to `hard`. The weights are a plain guess, not fitted; an analyst
compares it with a trained classifier on the features kept in the audit log.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cascade.errors import ConfigError
from cascade.types import Beliefs, ChatRequest
from classifiers.text import Asked, Extraction, asked

_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"\w+")
_CODE: Final = re.compile(r"\b(?:def|class) \w|;[ \t]*$", re.MULTILINE)
_CODE_SIGNS: Final = ("```", "#include", "=>", "SELECT ")
_PRODUCT: Final = re.compile(r"\d\s*[*\u00d7x]\s*\d")

# Korean words take endings, so their stems are looked for anywhere.
_STEP_WORDS: Final = frozenset(
    {
        *("prove", "derive", "compare", "analyse", "analyze"),
        *("design", "refactor", "debug", "optimise", "optimize"),
    }
)
_STEP_STEMS: Final = (
    *("step by step", "explain why"),
    *("증명", "유도", "단계별", "비교", "분석", "설계", "리팩", "디버깅", "최적화", "이유를 설명"),
)
_PRODUCT_WORDS: Final = frozenset({"times", "multiplied"})
_PRODUCT_STEMS: Final = ("product of", "divided by", "곱하", "곱한", "나누", "나눈")
_CONSTRAINT_WORDS: Final = frozenset({"must", "only", "exactly", "without", "never", "each"})
_CONSTRAINT_STEMS: Final = (
    *("at least", "at most"),
    *("반드시", "정확히", "최소", "최대", "이상", "이하", "없이", "각각", "절대", "오직", "제외"),
)
_READ: Final = Extraction(ask_tokens=500, context_tokens=250, code_tokens=250)
"""Nothing is embedded here, so it may be more than fits into an embedding model."""

WEIGHTS: Mapping[str, float] = {
    "bias": -1.65,
    "log_tokens": 0.25,
    "numbers": 0.1,
    "code": 0.8,
    "steps": 0.9,
    "product": 1.2,
    "constraints": 0.2,
    "turns": 0.05,
    "tools": 0.5,
    "images": 0.3,
    "escalation": 2.0,
}


class HeuristicEstimator:
    """Difficulty in [0, 1] from what the ask looks like; deterministic, microseconds.

    Args:
        name: how the audit log calls it.
        tiers: for each tier (easy, hard): its probability on the easiest and the hardest request.
        text: what of a conversation is looked at; fields of Extraction.
    """

    asks: str | None = None

    def __init__(
        self,
        *,
        name: str = "heuristic",
        tiers: Mapping[str, Sequence[float]],
        text: Mapping[str, Any] | None = None,
    ) -> None:
        for tier, ends in tiers.items():
            if len(ends) != 2 or not 0.0 <= ends[1] <= ends[0] <= 1.0:  # noqa: PLR2004
                raise ConfigError(f"tier {tier!r}: give [easy, hard] with 1 >= easy >= hard >= 0")
        self.name = name
        self._tiers = {tier: (ends[0], ends[1]) for tier, ends in tiers.items()}
        self._read = Extraction.of(text, "text", _READ)

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[Beliefs]:
        """One Beliefs a request."""
        return [self._beliefs(request) for request in requests]

    def _beliefs(self, request: ChatRequest) -> Beliefs:
        features = looks(request, asked(request.messages, self._read))
        logit = WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in features.items())
        difficulty = 1.0 / (1.0 + math.exp(-logit))
        mean = {
            tier: easy + (hard - easy) * difficulty for tier, (easy, hard) in self._tiers.items()
        }
        return Beliefs(mean=mean, features={**features, "difficulty": difficulty})


def looks(request: ChatRequest, ask: Asked) -> dict[str, float]:
    """What a request looks like, in numbers; an ask that goes back to another looks like both."""
    text = ask.said if ask.refers else ask.text
    lowered = text.lower()
    words = _WORD.findall(lowered)
    code = any(sign in text for sign in _CODE_SIGNS) or _CODE.search(text)
    product = _names(lowered, words, _PRODUCT_WORDS, _PRODUCT_STEMS) or _PRODUCT.search(lowered)
    constraints = sum(map(lowered.count, _CONSTRAINT_STEMS))
    constraints += sum(word in _CONSTRAINT_WORDS for word in words)
    return {
        "log_tokens": math.log1p(ask.tokens),
        "numbers": float(min(20, len(_NUMBER.findall(text)))),
        "code": float(bool(code)),
        "steps": float(_names(lowered, words, _STEP_WORDS, _STEP_STEMS)),
        "product": float(bool(product)),
        "constraints": float(min(10, constraints)),
        "turns": float(min(40, len(request.messages))),
        "tools": float(bool(request.tools)),
        "images": float(min(10, ask.images)),
        "escalation": request.escalation,
    }


def _names(
    lowered: str, words: Sequence[str], any_of: frozenset[str], stems: Sequence[str]
) -> bool:
    return not any_of.isdisjoint(words) or any(stem in lowered for stem in stems)
