"""cascade config check | show."""

from pathlib import Path

import click
import orjson

from serving.commands.options import config_option, json_option, load, wire
from serving.store.database import shown


@click.group()
def config() -> None:
    """Check or show the configuration."""


@config.command()
@config_option
@json_option
def check(path: Path | None, as_json: bool) -> None:
    """Say whether the configuration can work; the exit status is 1 when it cannot."""
    file = load(path)
    snapshot = wire(file)
    if as_json:
        report = {"ok": True, "file": str(file.path), "version": snapshot.version}
        click.echo(orjson.dumps(report).decode())
        return
    click.secho(f"{file.path} can work (version {snapshot.version})", fg="green")
    for name, kind in snapshot.models:
        click.echo(f"  {kind:<10} {name}")


@config.command()
@config_option
def show(path: Path | None) -> None:
    """Print the configuration as it is understood, defaults filled in, passwords left out."""
    file = load(path)
    data = file.config.model_dump(mode="json")
    data["audit"]["url"] = shown(file.audit_url)
    click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
