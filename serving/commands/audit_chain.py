"""cascade audit verify | key."""

import sys
from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.console import Console

from serving.commands.log import audit_database
from serving.commands.options import config_option, json_option
from serving.commands.progress import counting
from serving.store import verify as checking
from serving.store.keys import new_key, required_keys


@click.command()
@config_option
@json_option
def verify(path: Path | None, as_json: bool) -> None:
    """Check the chains of the log; exit status 1 and the first broken row when one is.

    Rows that were removed by retention or on demand are named and are no fault. The JSON has the
    heads of the chains: kept elsewhere, they show later that no chain is gone as a whole.
    """
    keys = required_keys("checking the chains")
    with audit_database(path) as engine:
        with engine.connect() as connection:
            number = checking.chained(connection)
        with counting(Console(stderr=True), "rows", number) as done:
            found = checking.verify(engine, keys, done)
    if as_json:
        click.echo(orjson.dumps(asdict(found), option=orjson.OPT_INDENT_2).decode())
    else:
        _tell(found)
    if found.faults:
        sys.exit(1)


@click.command()
def key() -> None:
    """Print a new key for CASCADE_AUDIT_KEY.

    To change keys, put the new one in front of the old one with a comma between them.
    """
    click.echo(new_key())


def _tell(found: checking.Verified) -> None:
    for fault in found.faults:
        request = f" (request {fault.request_id})" if fault.request_id else ""
        click.secho(f"row {fault.number} of chain {fault.writer}{request} {fault.what}", fg="red")
    chains = len(found.heads)
    click.echo(f"{found.rows:,} rows in {chains:,} {'chain' if chains == 1 else 'chains'}")
    for kind, number in found.missing.items():
        click.echo(f"{number:,} rows were removed by right: {kind}")
    if found.unchained:
        click.echo(
            f"{found.unchained:,} requests are in no chain: they were written while audit.chain "
            "was off, or not by Cascade"
        )
    if not found.faults:
        click.secho("nothing was changed", fg="green")
