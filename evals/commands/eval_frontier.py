"""cascade eval frontier: what policies would have cost and scored, at every setting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from cascade.pricing import PriceCard
from evals.commands.tables import loaded, table_options
from evals.files import require_folder, write_whole
from evals.frontier import page
from evals.frontier.measure import measure
from evals.frontier.plot import draw
from evals.frontier.policies import NAMES
from evals.frontier.report import record, report, rows_of_settings
from evals.frontier.warmth import Warmth
from evals.panel_plot import require_plot
from evals.panel_report import on_screen
from evals.tables import OutcomeTable
from evals.tables.prices import stated
from serving.commands.options import json_option, load, wire

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@table_options
@click.option(
    "--policy", "names", multiple=True, type=click.Choice(NAMES), help="Only these; repeatable."
)
@click.option(
    "--resamples",
    type=click.IntRange(20, 100_000),
    default=200,
    show_default=True,
    help="Of the groups, for the intervals.",
)
@click.option("--seed", default=0, show_default=True, help="Of the resamples.")
@click.option(
    "--config",
    type=_FILE,
    help="Whose tiers' prices say what a cold cache costs, for a table with sessions; prices "
    "INPUT/CACHED/OUTPUT do as well.",
)
@click.option("--html", type=_FILE, help="A page to write: the picture and all tables.")
@click.option("--png", type=_FILE, help="A picture to write.")
@click.option("--csv", type=_FILE, help="Every setting of every policy on the test rows.")
@json_option
def frontier(  # noqa: PLR0917 - click passes options by name
    names: Sequence[str],
    resamples: int,
    seed: int,
    config: Path | None,
    html: Path | None,
    png: Path | None,
    csv: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay policies over TABLE without a model call: quality against cost.

    What policies learn comes from the fit rows, settings are chosen on the choose rows, and all
    numbers are of the test rows.
    """
    for path in filter(None, (html, csv)):
        require_folder(path)
    if html is not None:
        page.require_plotly()
    if png is not None:
        require_plot(png)
    console = Console(stderr=True)
    with console.status("reading the table"):
        table = loaded(**options)
    with console.status("replaying"):
        warmth = _warmth(table, options["prices"], config)
        found = measure(table, names=names, resamples=resamples, seed=seed, warmth=warmth)
    if html is not None:
        page.write(html, found)
    if png is not None:
        draw(png, found)
    if csv is not None:
        write_whole(csv, rows_of_settings(found))
    if as_json:
        click.echo(orjson.dumps(record(found), option=orjson.OPT_INDENT_2).decode())
        return
    on_screen(Console(), report(found))


def _warmth(table: OutcomeTable, prices: Sequence[str], config: Path | None) -> Warmth | None:
    """What cold caches cost; None without conversations, or where no price says so."""
    if not (table.sessions != "").any():
        return None
    tiers = {} if config is None else wire(load(config)).tiers
    cards: dict[str, PriceCard | None] = {name: tier.prices for name, tier in tiers.items()}
    cards |= {tier: price for tier, price in stated(prices).items() if isinstance(price, PriceCard)}
    found = Warmth.of(table.tiers, cards)
    return found if found.dollars.any() else None
