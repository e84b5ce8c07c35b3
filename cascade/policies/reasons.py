"""Says why a utility policy did what it did, for whoever reads the audit log."""

from decimal import Decimal
from typing import Final

from cascade.types import Attempt

_AT_ITS_WORD: Final = 5e-4
"""A belief that is no farther from a score is the score."""


def told(call: Attempt, believed: float | None) -> str:
    """What came of a call, as the beginning of a reason."""
    tier, judge, score = call.step.tier, call.step.judge, score_of(call)
    if not call.answered:
        return f"{tier} failed"
    if judge is None:
        return f"{tier}'s answer is taken unseen, being right with {believed or 0.0:.3f}"
    if call.verdict is None:
        return f"{judge} failed on {tier}'s answer"
    if score is None:
        return f"{judge} cannot tell about {tier}'s answer"
    said = f"{judge} gives {tier}'s answer {score:.3f}"
    if believed is None or at_its_word(score, believed):
        return said
    return f"{said}, after which it is believed right with {believed:.3f}"


def score_of(call: Attempt) -> float | None:
    """What the judge gave an answer; None where it gave none."""
    return call.verdict.score if call.verdict else None


def at_its_word(score: float, believed: float) -> bool:
    """Whether what is believed of an answer is what its judge said, and nothing else."""
    return abs(score - believed) <= _AT_ITS_WORD


def usd(dollars: float) -> str:
    """Four digits that count, however small the sum."""
    return f"{'-' if dollars < 0.0 else ''}${Decimal(f'{abs(dollars):.4g}'):f}"
