"""Learns how fast each tier answers, from its answers: what a deadline is held against.

A model's time is a wait that grows with the prompt, and then a time for each token. Both change
with load and hardware, so nothing is assumed, newer answers count more, and a tier that has not
answered yet has no expected time.
"""

from dataclasses import dataclass

from cascade.quote import Quote
from cascade.types import Attempt, Usage

KEEP = 0.9
"""What an observation is worth once there is a newer one: about ten answers are remembered."""

_SPREAD_TOKENS = 64.0
"""Prompts must differ by more than this for their lengths to say what a prompt token takes."""


@dataclass(slots=True)
class _Line:
    """Sums over a tier's answers, older ones discounted.

    x is the prompt tokens that were not read from a cache, y the seconds to the first token.
    """

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    output_tokens: float = 0.0
    output_seconds: float = 0.0


class Pace:
    """Seconds to the first token as a + b per prompt token, and seconds for each output token.

    Args:
        keep: what an observation is worth once there is a newer one, in (0, 1).
    """

    def __init__(self, *, keep: float = KEEP) -> None:
        self._keep = keep
        self._lines: dict[str, _Line] = {}

    def observe(self, attempt: Attempt) -> None:
        """A tier gave a whole answer; one without its usage or its first token says nothing."""
        usage = attempt.completion.usage if attempt.completion else Usage()
        y = attempt.first_token_seconds
        if y is None or usage.prompt is None or usage.output is None:
            return
        tier, x = attempt.step.tier, float(usage.prompt - (usage.cache_read or 0))
        line, keep = self._lines.setdefault(tier, _Line()), self._keep
        line.weight = keep * line.weight + 1.0
        line.x = keep * line.x + x
        line.y = keep * line.y + y
        line.xx = keep * line.xx + x * x
        line.xy = keep * line.xy + x * y
        # The first token's time is in y.
        following = max(0, usage.output + (usage.reasoning or 0) - 1)
        line.output_tokens = keep * line.output_tokens + following
        line.output_seconds = keep * line.output_seconds + (
            attempt.seconds - y if following else 0.0
        )

    def seconds(self, quote: Quote) -> float | None:
        """The time that a quote's expected tokens take; None where that is not known."""
        line = self._lines.get(quote.tier)
        if line is None or line.output_tokens <= 0.0:
            return None
        per_token = line.output_seconds / line.output_tokens
        following = max(0, quote.expected_output_tokens - 1)
        return _first(line, quote.cold_tokens) + following * per_token

    def prompt_token_seconds(self, tier: str) -> float | None:
        """What one more prompt token that is computed takes; None while nothing shows it."""
        line = self._lines.get(tier)
        return (_slope(line) or None) if line else None


def _first(line: _Line, tokens: int) -> float:
    x, y = line.x / line.weight, line.y / line.weight
    return max(0.0, y + _slope(line) * (tokens - x))


def _slope(line: _Line) -> float:
    """Least squares, damped where prompts are too alike to tell and never negative."""
    x, y = line.x / line.weight, line.y / line.weight
    spread = line.xx / line.weight - x * x
    return max(0.0, (line.xy / line.weight - x * y) / (spread + _SPREAD_TOKENS**2))
