"""cascade eval compare: whether policy A is better than policy B, on the same prompts."""

from typing import Any

import click
import orjson
from rich.console import Console

from evals.choice.compare_report import plain, report
from evals.choice.comparison import compare as compared
from evals.commands.tables import loaded, table_options
from evals.frontier.known import complete
from evals.panel_report import on_screen
from serving.commands.options import json_option


@click.command("compare")
@table_options
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Prompts to show, those that differ most first.",
)
@json_option
def compare(first: str, second: str, limit: int, as_json: bool, **options: Any) -> None:
    """Compare policies A and B on TABLE's test rows, in pairs.

    Each is NAME or NAME:SETTING, such as utility, cascade:0.7 or always:large. A setting that is
    not given is the one with the largest lead over a random mix on the choose rows.
    """
    table = loaded(**options)
    found = compared(table, first, second)
    test = complete(table).of("test")
    if as_json:
        click.echo(orjson.dumps(plain(found, test, limit)).decode())
        return
    on_screen(Console(), report(found, test, limit))
