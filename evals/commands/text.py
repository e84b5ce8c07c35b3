"""python -m evals text: how well judges that read nothing but text tell right from wrong."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from cascade.protocols import Judge
from evals.escalation import ORDERS, Scored, recovered
from evals.metrics import auroc, bootstrap, mean
from evals.panel_choice import KINDS
from evals.text_judging import PRICE_RATIO, AnswerPair, load_pairs, scored
from judges.asked import AskedJudge
from judges.format import FormatJudge
from judges.working import WorkingJudge

RESAMPLES = 200


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--kind", type=click.Choice(KINDS), default="blend", help="The kind of model.")
@click.option(
    "--price-ratio",
    type=click.FloatRange(0, 1),
    default=PRICE_RATIO,
    show_default=True,
    help="What a weak call costs of a strong one.",
)
def text(file: Path, kind: str, price_ratio: float) -> None:
    """Judge the weak answers in FILE (JSON lines, .gz too) by their text, five-fold.

    Both gradings are printed: the one in the file, and one by the value of the final number.
    """
    console, pairs = Console(), load_pairs(file)
    for title, graded in (("as graded", pairs), ("regraded", [p.regraded() for p in pairs])):
        with console.status(f"{title}: fitting"):
            rows = judged(graded, kind)
        _show(console, title, rows, price_ratio)


def judged(pairs: Sequence[AnswerPair], kind: str = "blend") -> list[Scored]:
    """The pairs as the default panel's members that read nothing but text score them."""
    members: list[Judge] = [
        FormatJudge(name="well_formed"),
        WorkingJudge(name="working"),
        AskedJudge(name="asked"),
    ]
    return asyncio.run(scored(pairs, members, kind=kind))


def _show(console: Console, title: str, rows: Sequence[Scored], price_ratio: float) -> None:
    weak, strong = mean([r.small_right for r in rows]), mean([r.large_right for r in rows])
    console.print(
        f"\n{title}: {len(rows)} answers, weak {weak:.1%} right, strong {strong:.1%}; "
        f"AUC {_auc(rows):.3f} ({_interval(rows, _auc)})",
        highlight=False,
    )
    table = Table()
    table.add_column("sent up by")
    table.add_column("area", justify="right")
    table.add_column("95 %", justify="right")
    for order in ("random", *ORDERS):

        def area(some: Sequence[Scored], order: str = order) -> float:
            return recovered(some, order, price_ratio)

        table.add_row(order, f"{area(rows):.3f}", _interval(rows, area))
    console.print(table)
    console.print(
        "area: share of the gap between the models won back, averaged over cost, the weak call "
        f"included at {price_ratio:g} of a strong one",
        highlight=False,
    )


def _auc(rows: Sequence[Scored]) -> float:
    found = auroc([row.small for row in rows], [row.small_right for row in rows])
    return 0.5 if found is None else found


def _interval(rows: Sequence[Scored], statistic: Callable[[Sequence[Scored]], float]) -> str:
    low, high = bootstrap(rows, statistic, resamples=RESAMPLES)
    return f"{low:.3f} to {high:.3f}"
