"""Puts comparisons into a table and into sentences that say only what their numbers say."""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich import box
from rich.table import Table

from evals.comparison import EVERYTHING, Comparison, Finding, Standing
from evals.metrics import Interval

MILLION = 1_000_000

HOW_TO_READ = (
    "Accuracy in % (95 % Wilson interval), below it dollars per million answers. up: share that "
    "the ladder took to the large model. mix: each prompt goes to the large model by chance, as "
    "often as the ladder's cost pays for. difference: ladder minus mix, in points, below it the "
    "95 % bootstrap interval over prompts, each row for itself."
)


def table(comparisons: Sequence[Comparison], ratio: Decimal) -> Table:
    """One row a kind: the two models, the ladder, the mix and the difference."""
    shown = Table(
        title=f"small model at {ratio:f} of the large model's price",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("kind", "always-small", "always-large", "ladder", "up", "mix", "difference"):
        shown.add_column(name, justify="left" if name == "kind" else "right", no_wrap=True)
    for row in comparisons:
        shown.add_row(
            f"{row.kind}\nn = {row.total}",
            _cell(row.small),
            _cell(row.large),
            _cell(row.ladder),
            f"{row.escalated:.0%}",
            f"{row.mix_accuracy * 100:.0f}",
            f"{row.difference * 100:+.1f}\n{_points(row.interval)}",
            end_section=row.kind == EVERYTHING,
        )
    return shown


def sentences(comparisons: Sequence[Comparison]) -> list[str]:
    """What the numbers say: of all prompts, of each kind, and of the plain alternatives."""
    overall = [row for row in comparisons if row.kind == EVERYTHING]
    kinds = [row for row in comparisons if row.kind != EVERYTHING]
    said = [f"Over all {row.total} prompts the ladder {_verdict(row)}." for row in overall]
    by_finding = {
        "It beats the mix on": [row for row in kinds if row.finding is Finding.BETTER],
        "It loses to the mix on": [row for row in kinds if row.finding is Finding.WORSE],
        "It cannot be told apart from the mix on": [
            row for row in kinds if row.finding is Finding.OPEN
        ],
    }
    said += [f"{start} {_listed(rows)}." for start, rows in by_finding.items() if rows]
    said += [_on_escalation(row) for row in overall]
    return said + [f"The ladder {_against_large(row)}." for row in overall]


def as_json(comparisons: Sequence[Comparison], ratio: Decimal) -> dict[str, Any]:
    """The same for programs; dollars are per answer."""
    return {
        "price_ratio": str(ratio),
        "rows": [asdict(row) | {"finding": row.finding.value} for row in comparisons],
        "sentences": sentences(comparisons),
    }


def _cell(standing: Standing) -> str:
    low, high = standing.interval
    accuracy = f"{standing.accuracy * 100:.0f} ({low * 100:.0f}-{high * 100:.0f})"
    return f"{accuracy}\n${standing.cost * MILLION:.2f}"


def _points(interval: Interval) -> str:
    return f"{interval.low * 100:+.1f} to {interval.high * 100:+.1f}"


def _verdict(row: Comparison) -> str:
    size = f"{abs(row.difference) * 100:.1f} points, 95 % interval {_points(row.interval)}"
    if row.finding is Finding.BETTER:
        return f"beats the random mix of equal cost ({size})"
    if row.finding is Finding.WORSE:
        return f"loses to the random mix of equal cost ({size})"
    side = "above" if row.difference > 0 else "below"
    level = "level with it" if row.difference == 0 else f"{side} it"
    return (
        f"cannot be told apart from the random mix of equal cost at n = {row.total}: "
        f"it is {level} ({size})"
    )


def _listed(rows: Sequence[Comparison]) -> str:
    return ", ".join(
        f"{row.kind} ({row.difference * 100:+.1f}, {_points(row.interval)}, n = {row.total})"
        for row in rows
    )


def _on_escalation(row: Comparison) -> str:
    """What became of the prompts that went up."""
    up = round(row.escalated * row.total)
    return (
        f"Of the {up} prompts it took up, the large model is wrong on {row.in_vain}, and on "
        f"{row.needless} the small one had been right."
    )


def _against_large(row: Comparison) -> str:
    """The ladder beside always asking the large model: what is paid, what is got."""
    share, gap = row.ladder.cost / row.large.cost, row.ladder.accuracy - row.large.accuracy
    got = (
        "is right as often"
        if gap == 0
        else f"is right {abs(gap) * 100:.1f} points {'more' if gap > 0 else 'less'} often"
    )
    paid = f"costs {share:.0%} of always-large and {got}"
    if share >= 1 and gap <= 0:
        return f"{paid}: here always-large is the better choice"
    return paid
