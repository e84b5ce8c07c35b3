"""How many tokens a byte of a prompt makes, learned for each tier from what its usage reports.

Where a model's tokenizer is not known, this is what its prompts are measured with. A tokenizer
makes about the same of the same traffic from day to day, so a few reports tell more than any table.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

START: Final = 0.25
"""Tokens a byte before anything was reported: English prose, and JSON a little more."""

LEAST: Final = 0.05
"""What a report is taken for at least."""

MOST: Final = 1.0
"""What it is taken for at most: no tokenizer takes more than a token a byte."""

KEPT: Final = 0.98
"""Of what older reports weigh that is left after one more: the last fifty count for most of it."""

START_BYTES: Final = 2000
"""What the start weighs: it is gone after a few prompts of usual length."""

MAX_TIERS: Final = 1000


class TokenRatio:
    """Tokens per byte of the rendering, by tier.

    Prompts count by their length: the long ones are where a wrong number costs. The marks of a chat
    template weigh most in short ones, which so hardly count.

    Args:
        start: what it is taken for before anything was reported.
    """

    def __init__(self, *, start: float = START) -> None:
        if not LEAST <= start <= MOST:
            raise ValueError(f"start is {start}, not from {LEAST} to {MOST}")
        self._start = start
        self._sums: OrderedDict[str, _Sums] = OrderedDict()

    def of(self, tier: str) -> float:
        """Tokens per byte of a tier's prompts."""
        sums = self._sums.get(tier)
        return self._start if sums is None else sums.tokens / sums.size

    def observe(self, tier: str, *, rendered_bytes: int, tokens: int | None) -> None:
        """A prompt of so many bytes took so many tokens; None, or no bytes, tells nothing.

        Prompts with media in them are better left out: how many tokens an image takes does not
        depend on its bytes.
        """
        if tokens is None or tokens < 1 or rendered_bytes < 1:
            return
        sums = self._sums.pop(tier, None) or _Sums(START_BYTES * self._start, START_BYTES)
        told = min(max(tokens, LEAST * rendered_bytes), MOST * rendered_bytes)
        self._sums[tier] = _Sums(sums.tokens * KEPT + told, sums.size * KEPT + rendered_bytes)
        if len(self._sums) > MAX_TIERS:
            self._sums.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of all reports, the older the less."""

    tokens: float
    size: float
