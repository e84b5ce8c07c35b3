"""cascade simulate replicas: what the rules make of a model's caches, beside published numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import orjson
from rich.console import Console

from evals.commands.progress import counting
from evals.pages import put
from evals.panel_report import as_markdown, on_screen
from evals.simulate.replica_table import PARTS, cells, filled, record, seeds_of, tables
from serving.commands.options import json_option

BEGIN: Final = "<!-- cascade simulate replicas --write -->"
END: Final = "<!-- end of replicas -->"


@click.command()
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=8,
    show_default=True,
    help="Runs of each cell; those of the last table are always the eight held-out ones.",
)
@click.option(
    "--requests",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="That are counted in each run.",
)
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="A table; repeatable.")
@click.option(
    "--write",
    "page",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A page whose tables, between two marks, are replaced.",
)
@json_option
def replicas(
    seeds: int, requests: int, only: Sequence[str], page: Path | None, *, as_json: bool
) -> None:
    """Simulate a published table of replica routing, and the rule that is its better.

    Servers, caches, rules and prices are the shipped ones; only the traffic is made up. It takes
    some minutes on one core.
    """
    if page is not None and only:
        raise click.UsageError("--write wants all tables: leave --only away")
    console, progress = Console(), Console(stderr=True)
    wanted = [cell for cell in cells(requests) if not only or cell.part in only]
    todo = [(cell, seeds_of(cell, seeds)) for cell in wanted]
    with counting(progress, [cell.part for cell, some in todo for _ in some]) as done:
        found = [filled(cell, some, done) for cell, some in todo]
    if as_json:
        click.echo(orjson.dumps([record(each) for each in found]).decode())
    else:
        on_screen(console, tables(found))
    if page is not None:
        put(page, BEGIN, END, as_markdown(tables(found)))
