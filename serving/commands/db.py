"""cascade db upgrade | check."""

from pathlib import Path

import click
from rich.console import Console

from cascade.errors import ConfigError
from serving.commands.options import audit_url, config_option
from serving.commands.progress import counting
from serving.store import revision, schema
from serving.store.adding import catch_up
from serving.store.database import engine_for, faults_of, shown
from serving.store.ranges import waiting


@click.group()
def db() -> None:
    """Create or check the audit database."""


@db.command()
@config_option
def upgrade(path: Path | None) -> None:
    """Create or migrate the tables, and add up what an older version wrote."""
    url = audit_url(path)
    state = schema.upgrade(url)
    _add_up(url)
    click.secho(f"{shown(url)} is at revision {state.current}", fg="green")


@db.command()
@config_option
def check(path: Path | None) -> None:
    """Say whether the tables are those that this version needs; exit status 1 when not."""
    url = audit_url(path)
    state = revision.check(url)
    if not state.at_head:
        raise ConfigError(
            f"{shown(url)} is at revision {state.current or 'none'}, this version needs "
            f"{state.head}: run `cascade db upgrade`"
        )
    click.secho(f"{shown(url)} is at revision {state.current}, as it should be", fg="green")


def _add_up(url: str) -> None:
    engine = engine_for(url)
    try:
        with faults_of(url):
            with engine.connect() as connection:
                left = waiting(connection)
            if not left:
                return
            with counting(Console(stderr=True), "requests added up", left) as done:
                while number := catch_up(engine):
                    done(number)
    finally:
        engine.dispose()
