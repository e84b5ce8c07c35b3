"""cascade simulate conversations: what it is worth to decide by what is warm."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console

from evals.commands.progress import counting
from evals.files import require_folder
from evals.pages import put
from evals.panel_plot import require_plot
from evals.panel_report import as_markdown, on_screen
from evals.simulate.conversation_plot import draw
from evals.simulate.conversation_ratios import Compared, by_cell
from evals.simulate.conversation_runs import Job, Kept, all_played
from evals.simulate.conversation_table import LONG, MIDDLE, closely, record, tables
from evals.simulate.conversations import HELD_OUT, Cell, Run, cells
from serving.commands.options import json_option

BEGIN: Final = "<!-- cascade simulate conversations --write -->"
END: Final = "<!-- end of conversations -->"

LINEUPS: Final = ("haiku-sonnet-opus", "luna-terra-sol", "5-mini-5.4-5.5", "own-8b-70b")
QUICK_TURNS: Final = 60


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Tenants of each cell.",
)
@click.option(
    "--turns",
    type=click.IntRange(20),
    default=250,
    show_default=True,
    help="That are counted of each.",
)
@click.option("--lineup", "names", multiple=True, type=click.Choice(LINEUPS), help="Repeatable.")
@click.option("--quick", is_flag=True, help="Two kinds of traffic, one seed and few turns.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=lambda: os.cpu_count() or 1,
    show_default="one a core",
    help="Processes.",
)
@click.option(
    "--keep",
    "kept",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file (JSON lines) for what is finished, from which an interrupted run goes on.",
)
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A page whose tables, between two marks, are replaced.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="A picture (.png) to write."
)
@json_option
def conversations(
    *,
    seeds: int,
    turns: int,
    names: Sequence[str],
    quick: bool,
    workers: int,
    kept: Path | None,
    page: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Simulate conversations under every policy, and compare what equal quality costs.

    Ledger, quotes, traffic, prices and the utility policy are the shipped ones; conversations,
    answers and judges are made up. All of it takes half an hour on two cores.
    """
    if page is not None and (quick or names):
        raise click.UsageError("--write wants all of it: leave --lineup and --quick away")
    if plot is not None:
        require_plot(plot)
    if kept is not None:
        require_folder(kept)
    names = names or LINEUPS
    if quick:
        seeds, turns = 1, min(turns, QUICK_TURNS)
    wanted, more = _cells(names, quick=quick)
    cells = (*wanted, *more)  # a seed after the other, so that what is kept early covers all cells
    jobs = [(cell, HELD_OUT + seed) for seed in range(seeds) for cell in cells]
    runs = _runs(jobs, turns, workers, None if kept is None else Kept(kept, turns))
    found = {each.cell: each for each in by_cell(runs)}
    some, others = [found[cell] for cell in wanted], [found[cell] for cell in more]
    if as_json:
        click.echo(orjson.dumps([record(each) for each in (*some, *others)]).decode())
    else:
        on_screen(Console(), tables(some, others, turns))
    if page is not None:
        put(page, BEGIN, END, as_markdown(tables(some, others, turns)))
    if plot is not None:
        draw(plot, some, _middle(some))


def _cells(names: Sequence[str], *, quick: bool) -> tuple[list[Cell], list[Cell]]:
    """All cells, and those that vary one thing and are none of them."""
    if quick:
        return [Cell(lineup=name, regime=each) for name in names for each in (MIDDLE, LONG)], []
    wanted = cells(names)
    return wanted, [cell for cell in closely(names) if cell not in wanted]


def _runs(jobs: Sequence[Job], turns: int, workers: int, kept: Kept | None) -> list[Run]:
    with counting(Console(stderr=True), [cell.lineup for cell, _ in jobs]) as done:
        return all_played(
            jobs,
            turns=turns,
            workers=workers,
            kept=kept,
            done=lambda run: done(run.cell.lineup),
        )


def _middle(some: Sequence[Compared]) -> Compared:
    """What the picture shows of one cell."""
    return next(each for each in some if each.cell.regime == MIDDLE)
