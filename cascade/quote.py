"""What a call is expected to cost and take, before it is made."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The part of a prompt that other conversations share, and what its warmth is worth; dollars.

    Attributes:
        premium: what it costs more cold than warm.
        cold: that premium of as much of it as is cold.
        credit: what warming it, or keeping it warm, is worth to later calls.
    """

    premium: float = 0.0
    cold: float = 0.0
    credit: float = 0.0


NOTHING = Shared()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a call to one tier is expected to cost and take; None where it cannot be known.

    The bill and the price to decide by are two things: what warming a prefix is worth to later
    calls is taken off the second.

    Attributes:
        warm_tokens: prompt tokens expected to be read from a cache.
        cold_tokens: prompt tokens expected to be computed.
        dollars: the expected bill.
        cold_premium: dollars more than if the whole prompt were warm.
        shared: the part of the prompt that other conversations share.
        judge_dollars: what judging the answer is expected to cost.
        judge_seconds: what judging it is expected to take.
        seconds: expected time to the full answer.
        estimated: the warm tokens rest on calls whose cached tokens were not reported.
    """

    tier: str
    replica: str | None = None
    warm_tokens: int = 0
    cold_tokens: int = 0
    expected_output_tokens: int = 0
    dollars: Decimal | None = None
    cold_premium: Decimal | None = None
    shared: Shared = NOTHING
    judge_dollars: Decimal = Decimal(0)
    judge_seconds: float = 0.0
    seconds: float | None = None
    estimated: bool = False

    @property
    def credit(self) -> Decimal:
        """Dollars that warming the prompt is worth to later calls."""
        return Decimal(self.shared.credit)

    @property
    def price(self) -> float | None:
        """Dollars to decide by, the judge left out: the bill less the credit."""
        if self.dollars is None:
            return None
        return float(self.dollars) - self.shared.credit
