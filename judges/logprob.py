"""How sure the model was of its own words: free wherever the server reports log probabilities.

The features follow the literature on answer confidence: mean and summed log probability, the least
likely token, quantiles, the first token of the answer, the margin between the two likeliest tokens
and the entropy over the reported ones. The raw score is one of them brought into [0, 1]; it becomes
a probability of being acceptable by calibration. Given a growing answer it scores what there is.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Completion, Json, Verdict

STATISTICS = ("mean", "min", "first")
"""Those that stand for the whole answer well enough to be tried out first."""

_QUANTILES: Final = {"q10": 0.10, "q25": 0.25, "q50": 0.50}


def _probability(logprob: float) -> float:
    return math.exp(min(0.0, logprob))


_SCORES: Final[Mapping[str, Callable[[float], float]]] = {
    **dict.fromkeys((*STATISTICS, "sum", *_QUANTILES), _probability),
    # The likeliest token's share of the two likeliest.
    **dict.fromkeys(
        ("margin_mean", "margin_min", "margin_first"), lambda m: 1 / (1 + math.exp(-m))
    ),
    **dict.fromkeys(("entropy_mean", "entropy_max"), lambda nats: math.exp(-nats)),
}


class LogprobJudge:
    """Score = one statistic of the answer's tokens, as a probability.

    Args:
        name: how verdicts call it.
        statistic: "mean" (the geometric mean probability of a token), "sum" (of the whole text),
            "min", "first", "q10", "q25", "q50"; "margin_mean", "margin_min", "margin_first" (the
            likeliest token's share of the two likeliest); "entropy_mean" or "entropy_max".
        words_only: leave out tokens without a letter or digit, such as JSON's punctuation.
        top_logprobs: alternatives asked for a token; margins need 2, entropies gain from more.
    """

    growing = True

    def __init__(
        self,
        *,
        name: str = "logprob",
        statistic: str = "mean",
        words_only: bool = False,
        top_logprobs: int = 5,
    ) -> None:
        if statistic not in _SCORES:
            raise ConfigError(
                f"judge {name!r}: statistic {statistic!r} is none of {', '.join(_SCORES)}"
            )
        if not 0 <= top_logprobs <= 20:  # noqa: PLR2004  # what the API allows
            raise ConfigError("it is not in 0..20", param="top_logprobs")
        self.name = name
        self.needs: Json = {"logprobs": True, "top_logprobs": top_logprobs}
        self._statistic = statistic
        self._words_only = words_only

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """None when the upstream gave no usable log probabilities: absent is not confident."""
        del request
        features = features_of(completion.logprobs, words_only=self._words_only)
        if features is None:
            return self._cannot_tell({}, "no log probabilities were reported")
        value = features.get(self._statistic)
        if value is None:
            return self._cannot_tell(
                features, f"there is no {self._statistic} without top_logprobs"
            )
        return Verdict(
            judge=self.name,
            score=_SCORES[self._statistic](value),
            features=features,
            reason=f"{self._statistic} {value:.3f} over {features['tokens']:.0f} tokens",
        )

    def _cannot_tell(self, features: Mapping[str, float], reason: str) -> Verdict:
        return Verdict(judge=self.name, score=None, features=features, reason=reason)


class RunningLogprobs:
    """The features of an answer that is still growing; adding costs the same at any length.

    Args:
        words_only: leave out tokens without a letter or digit.
    """

    def __init__(self, *, words_only: bool = False) -> None:
        self._words_only = words_only
        self._sorted: list[float] = []
        self._sum = 0.0
        self._first = 0.0
        self._margins = _Summary()
        self._entropies = _Summary()
        self._unusable = False
        self._begun = False

    def add(self, entries: Iterable[Json]) -> None:
        """Take the next tokens' entries, in OpenAI's shape."""
        for entry in entries:
            text = _text(entry)
            said = any(map(str.isalnum, text))
            if text and (said or not self._words_only):
                self._take(entry, said=said)

    def features(self) -> dict[str, float] | None:
        """Those of all that was added; None when any token's log probability was missing."""
        if self._unusable or not self._sorted:
            return None
        count = len(self._sorted)
        features = {
            "mean": self._sum / count,
            "sum": self._sum,
            "min": self._sorted[0],
            "first": self._first,
            "tokens": float(count),
            **{name: _quantile(self._sorted, share) for name, share in _QUANTILES.items()},
        }
        if self._margins.count:
            features |= {
                "margin_mean": self._margins.mean,
                "margin_min": self._margins.least,
                "margin_first": self._margins.first,
                "entropy_mean": self._entropies.mean,
                "entropy_max": self._entropies.most,
            }
        return features

    def _take(self, entry: Json, *, said: bool) -> None:
        value = _number(entry.get("logprob"))
        if value is None:
            self._unusable = True
            return
        self._sum += value
        insort(self._sorted, value)
        # The answer begins with the first letter or digit, not with white space or markup; until
        # one comes, with the first token.
        begins = said and not self._begun
        self._begun |= said
        if begins or len(self._sorted) == 1:
            self._first = value
        known = [_number(other.get("logprob")) for other in entry.get("top_logprobs") or ()]
        top = sorted((x for x in known if x is not None), reverse=True)
        if len(top) > 1:
            self._margins.add(top[0] - top[1], begins=begins)
            self._entropies.add(_entropy(top), begins=begins)


class _Summary:
    """Mean, extremes and the answer's first of values that come one by one."""

    def __init__(self) -> None:
        self.count = 0
        self.least, self.most = math.inf, -math.inf
        self.first = 0.0
        self._sum = 0.0

    @property
    def mean(self) -> float:
        return self._sum / self.count

    def add(self, value: float, *, begins: bool) -> None:
        if begins or not self.count:
            self.first = value
        self.count += 1
        self._sum += value
        self.least, self.most = min(self.least, value), max(self.most, value)


def features_of(
    logprobs: Sequence[Json] | None, *, words_only: bool = False
) -> dict[str, float] | None:
    """Features over the answer's text; None when any token's log probability is missing.

    End-of-text and template tokens carry no bytes and are left out, so that the features are the
    same whether a server reports them or not.
    """
    running = RunningLogprobs(words_only=words_only)
    running.add(logprobs or ())
    return running.features()


def _text(entry: Json) -> str:
    """A token's text. Where it is only part of a character it counts as a letter."""
    try:
        raw = bytes(entry["bytes"])
    except (KeyError, TypeError, ValueError):
        return str(entry.get("token") or "")
    return raw.decode(errors="replace").replace("\ufffd", "x")


def _entropy(top: Sequence[float]) -> float:
    """In nats, over the reported alternatives, what is missing of their sum counted as one more."""
    shares = [math.exp(value) for value in top]
    shares.append(max(0.0, 1.0 - sum(shares)))
    return -sum(share * math.log(share) for share in shares if share > 0.0)


def _quantile(ascending: Sequence[float], share: float) -> float:
    """Linear between the two nearest, as numpy's default."""
    at = share * (len(ascending) - 1)
    low = int(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (at - low) * (ascending[high] - ascending[low])


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
