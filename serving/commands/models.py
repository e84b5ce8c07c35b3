"""cascade models pull | status."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.table import Table

from serving.commands.options import config_option, json_option, load
from serving.commands.progress import downloading
from serving.models import fetch
from serving.models.home import home
from serving.models.status import FileStatus, ServerStatus, file_statuses, server_statuses


@click.group()
def models() -> None:
    """Fetch models and see how they are."""


@models.command()
@click.argument("names", nargs=-1)
@config_option
def pull(path: Path | None, names: tuple[str, ...]) -> None:
    """Fetch the named models, or all that the configuration launches."""
    wanted = names or tuple(
        tier.launch.model for tier in load(path).config.tiers.values() if tier.launch
    )
    console = Console()
    for name in wanted:
        with downloading(console) as progress:
            file = fetch.locate(name, home(), progress)
        click.secho(f"{name}: {file}", fg="green")


@models.command()
@json_option
def status(as_json: bool) -> None:
    """Show the model files and the model servers that run on this machine."""
    files, servers = file_statuses(home()), server_statuses(home())
    if as_json:
        report = {"files": [asdict(f) for f in files], "servers": [asdict(s) for s in servers]}
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2, default=str).decode())
        return
    console = Console()
    console.print(_files(files))
    click.echo(f"  in {home() / 'models'}\n")
    if not servers:
        click.echo("no model server runs; `cascade serve` starts them")
        return
    console.print(_servers(servers))
    for server in servers:
        click.echo(f"  {server.state.tier}: {server.state.url}, log {server.state.log}")


def _files(files: Sequence[FileStatus]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("model", "there", "of", "checked"):
        table.add_column(column)
    for file in files:
        table.add_row(
            file.model.key,
            f"{file.size_bytes / 1e6:,.0f} MB" if file.size_bytes else "no",
            f"{file.model.size_bytes / 1e6:,.0f} MB",
            "yes" if file.verified else "no",
        )
    return table


def _servers(servers: Sequence[ServerStatus]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("tier", "model", "state", "answers", "pid", "restarts"):
        table.add_column(column)
    for server in servers:
        state = server.state
        table.add_row(
            state.tier,
            state.model,
            state.state,
            "yes" if server.answers else "no",
            str(state.pid or ""),
            str(state.restarts),
        )
    return table
