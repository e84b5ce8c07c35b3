"""What was predicted of each request beside what its server reported, and how far apart it is."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from cascade.tiers import ModelTier
from cascade.types import Attempt
from evals.panel_report import Printed

HIGH: Final = 0.95
_HEAD: Final = (
    *("server", "requests", "not reported", "prompt", "cached", "error: median", "p95", "max"),
    *("exact", "quoted", "used", "difference"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request.

    Attributes:
        quoted: tokens of its prompt, as quoted; not exact where the server did not tell in time.
        prompt: the same, as reported.
        predicted: tokens that were expected to be read from the cache.
        reported: those that were; None when the server did not say.
        predicted_dollars: of the prompt, as quoted.
        dollars: of the prompt, by the usage.
    """

    conversation: int
    turn: int
    quoted: int
    prompt: int
    predicted: int
    reported: int | None
    predicted_dollars: Decimal
    dollars: Decimal

    @property
    def error(self) -> int | None:
        """Tokens between what was predicted and what was reported."""
        return None if self.reported is None else abs(self.predicted - self.reported)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All requests to one server.

    Attributes:
        block: tokens in which its cache counts.
    """

    server: str
    block: int
    rows: Sequence[Row]

    @property
    def reported(self) -> list[Row]:
        """The rows whose server said what it read."""
        return [row for row in self.rows if row.reported is not None]

    @property
    def errors(self) -> list[int]:
        """Of the reported rows, in tokens, ascending."""
        return sorted(row.error for row in self.rows if row.error is not None)

    @property
    def median(self) -> float | None:
        """Of the errors, in tokens."""
        return statistics.median(self.errors) if self.errors else None

    @property
    def high(self) -> int | None:
        """The error that 95 in 100 rows do not exceed, in tokens."""
        errors = self.errors
        return errors[min(len(errors) - 1, int(HIGH * len(errors)))] if errors else None

    @property
    def difference(self) -> float | None:
        """Dollars of all reported prompts: what was predicted more, as a share of what was paid."""
        rows = self.reported
        paid = sum((row.dollars for row in rows), Decimal(0))
        expected = sum((row.predicted_dollars for row in rows), Decimal(0))
        return float((expected - paid) / paid) if paid else None


def row(conversation: int, turn: int, attempt: Attempt, tier: ModelTier) -> Row:
    """What an attempt's quote said beside what its usage did.

    Raises:
        ValueError: there is no quote, no usage, or no price to compare.
    """
    quote, answer = attempt.quote, attempt.completion
    usage = answer.usage if answer else None
    if quote is None or usage is None or usage.input is None or tier.prices is None:
        raise ValueError(f"attempt {attempt.index} of {tier.name} has no quote, usage or price")
    predicted = tier.prices.prompt_cost(warm=quote.warm_tokens, cold=quote.cold_tokens)
    paid = tier.prices.prompt_cost(warm=usage.cache_read or 0, cold=usage.input)
    if predicted is None or paid is None:
        raise ValueError(f"tier {tier.name} has no price of a prompt")
    return Row(
        conversation=conversation,
        turn=turn,
        quoted=quote.warm_tokens + quote.cold_tokens,
        prompt=usage.prompt or 0,
        predicted=quote.warm_tokens,
        reported=usage.cache_read,
        predicted_dollars=predicted,
        dollars=paid,
    )


def table(measured: Sequence[Measured]) -> Printed:
    """One line a server."""
    title = "cached tokens and prompt dollars, predicted and reported"
    return Printed(title, _HEAD, [_line(each) for each in measured])


def _line(one: Measured) -> tuple[str, ...]:
    rows, reported, errors = one.rows, one.reported, one.errors
    start = (one.server, str(len(rows)), f"{1 - len(reported) / len(rows):.1%}")
    if not reported:
        return (*start, *["" for _ in _HEAD[len(start) :]])
    prompts = sum(each.prompt for each in reported)
    read = sum(each.reported or 0 for each in reported)
    return (
        *start,
        f"{prompts:,}",
        f"{read:,}",
        *(_both(each, one.block) for each in (one.median, one.high, errors[-1])),
        f"{errors.count(0) / len(errors):.1%}",
        *(f"${sum(dollars):.6f}" for dollars in _dollars(reported)),
        f"{one.difference:+.2%}",
    )


def _dollars(rows: Sequence[Row]) -> tuple[list[Decimal], list[Decimal]]:
    return [each.predicted_dollars for each in rows], [each.dollars for each in rows]


def _both(tokens: float | None, block: int) -> str:
    """So many tokens, and how many blocks that is where a block has more than one."""
    if tokens is None:
        return ""
    return f"{tokens:g}" if block == 1 else f"{tokens:g} ({tokens / block:g})"


def as_json(one: Measured) -> dict[str, Any]:
    """A server's figures and all its rows."""
    return {
        "server": one.server,
        "block": one.block,
        "requests": len(one.rows),
        "not_reported": len(one.rows) - len(one.reported),
        "median_error_tokens": one.median,
        "p95_error_tokens": one.high,
        "max_error_tokens": one.errors[-1] if one.errors else None,
        "difference_in_dollars": one.difference,
        "rows": [
            {
                "conversation": each.conversation,
                "turn": each.turn,
                "quoted": each.quoted,
                "prompt": each.prompt,
                "predicted": each.predicted,
                "reported": each.reported,
                "predicted_dollars": str(each.predicted_dollars),
                "dollars": str(each.dollars),
            }
            for each in one.rows
        ],
    }
