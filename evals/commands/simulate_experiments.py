"""cascade simulate experiments: how often daily looks are wrong, and how soon they are right."""

from functools import partial
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console

from evals.commands.progress import counting
from evals.pages import put
from evals.panel_report import as_markdown, on_screen
from evals.simulate.experiment_table import named, plans, played, record, tables
from serving.commands.options import json_option

BEGIN: Final = "<!-- cascade simulate experiments --write -->"
END: Final = "<!-- end of experiments -->"


@click.command()
@click.option(
    "--runs",
    type=click.IntRange(20, 100_000),
    default=1000,
    show_default=True,
    help="Experiments of each kind.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another one, other data.")
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A page whose tables, between two marks, are replaced.",
)
@json_option
def experiments(*, runs: int, seed: int, page: Path | None, as_json: bool) -> None:
    """Simulate experiments that are looked at every day for 30 days.

    The intervals and the check of the shares are those of `cascade experiment results`. It takes a
    few minutes on one core.
    """
    kinds = plans()
    tasks = [named(plan) for some in kinds for plan in some for _ in range(runs)]
    with counting(Console(stderr=True), tasks) as done:
        found = [
            [played(plan, runs, seed, partial(done, named(plan))) for plan in some]
            for some in kinds
        ]
    if as_json:
        click.echo(orjson.dumps([record(each) for some in found for each in some]).decode())
    else:
        on_screen(Console(), tables(*found))
    if page is not None:
        put(page, BEGIN, END, as_markdown(tables(*found)))
