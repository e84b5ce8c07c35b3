"""How sure the model was of its own words: free wherever the server reports log probabilities.

The features follow the literature on answer confidence: mean and summed log probability, the least
likely token, the first token, and the margin between the two likeliest tokens. The raw score is one
of them brought into [0, 1]; it becomes a probability of being acceptable by calibration.
"""

import math
from collections.abc import Sequence
from typing import Any

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Completion, Json, Verdict

STATISTICS = ("mean", "min", "first")


class LogprobJudge:
    """Score = exp of one statistic of the answer's token log probabilities.

    Args:
        name: how verdicts call it.
        statistic: "mean" (the geometric mean probability of a token), "min" or "first".
    """

    def __init__(self, *, name: str = "logprob", statistic: str = "mean") -> None:
        if statistic not in STATISTICS:
            raise ConfigError(
                f"judge {name!r}: statistic {statistic!r} is none of {', '.join(STATISTICS)}"
            )
        self.name = name
        self.needs: Json = {"logprobs": True, "top_logprobs": 2}
        self._statistic = statistic

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """None when the upstream gave no usable log probabilities: absent is not confident."""
        del request
        features = features_of(completion.logprobs)
        if features is None:
            return Verdict(judge=self.name, score=None, reason="no log probabilities were reported")
        value = features[self._statistic]
        return Verdict(
            judge=self.name,
            score=math.exp(min(0.0, value)),
            features=features,
            reason=f"{self._statistic} logprob {value:.3f} over {features['tokens']:.0f} tokens",
        )


def features_of(logprobs: Sequence[Json] | None) -> dict[str, float] | None:
    """Features over the answer's text; None when any token's log probability is missing.

    End-of-text and template tokens carry no bytes and are left out, so that the features are the
    same whether a server reports them or not.
    """
    entries = [entry for entry in logprobs or () if _is_text(entry)]
    values = [_number(entry.get("logprob")) for entry in entries]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    margins = [margin for entry in entries if (margin := _margin(entry)) is not None]
    features = {
        "mean": sum(known) / len(known),
        "sum": sum(known),
        "min": min(known),
        "first": known[0],
        "tokens": float(len(known)),
    }
    if margins:
        features |= {"margin_mean": sum(margins) / len(margins), "margin_min": min(margins)}
    return features


def _is_text(entry: Json) -> bool:
    text = entry.get("bytes")
    return bool(entry.get("token") if text is None else text)


def _margin(entry: Json) -> float | None:
    """Log probability between the two likeliest tokens."""
    top = [_number(other.get("logprob")) for other in entry.get("top_logprobs") or ()]
    known = sorted((value for value in top if value is not None), reverse=True)
    return known[0] - known[1] if len(known) > 1 else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
