"""cascade db upgrade | check."""

from pathlib import Path

import click

from cascade.errors import ConfigError
from serving.commands.options import audit_url, config_option
from serving.store import schema
from serving.store.database import shown


@click.group()
def db() -> None:
    """Create or check the audit database."""


@db.command()
@config_option
def upgrade(path: Path | None) -> None:
    """Create or migrate the tables."""
    url = audit_url(path)
    state = schema.upgrade(url)
    click.secho(f"{shown(url)} is at revision {state.current}", fg="green")


@db.command()
@config_option
def check(path: Path | None) -> None:
    """Say whether the tables are those that this version needs; exit status 1 when not."""
    url = audit_url(path)
    state = schema.check(url)
    if not state.at_head:
        raise ConfigError(
            f"{shown(url)} is at revision {state.current or 'none'}, this version needs "
            f"{state.head}: run `cascade db upgrade`"
        )
    click.secho(f"{shown(url)} is at revision {state.current}, as it should be", fg="green")
