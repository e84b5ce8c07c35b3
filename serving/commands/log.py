"""The audit log as the commands that read it open it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Engine

from cascade.errors import ConfigError
from cascade.tiers import ModelTier
from serving.commands.options import audit_url, load, wire
from serving.store import revision
from serving.store.database import engine_for, faults_of

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@contextmanager
def audit_database(path: Path | None) -> Iterator[Engine]:
    """The audit database of a configuration.

    Raises:
        ConfigError: the configuration is wrong, or the database is not ready.
        AuditError: it cannot be used.
    """
    url = audit_url(path)
    revision.require_head(url)
    engine = engine_for(url)
    try:
        with faults_of(url):
            yield engine
    finally:
        engine.dispose()


def usable_tiers(path: Path | None) -> Mapping[str, ModelTier]:
    """The tiers of a configuration.

    A log can be read where its tiers cannot be used, so a configuration that cannot work is said
    and no more: it has no tiers then.
    """
    file = load(path)
    try:
        return wire(file).tiers
    except ConfigError as error:
        click.echo(f"prices and caches of the tiers are not known: {error.message}", err=True)
        return {}


def _until(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """The time before which; None is to the end."""
    return None if text is None else since_of(context, option, text)


def since_of(_context: click.Context, _option: click.Parameter, text: str) -> float | None:
    """The time, in seconds since the epoch, from which on; None is from the beginning."""
    if text == "all":
        return None
    if not (match := re.fullmatch(r"(\d+)([smhd])", text)):
        raise click.BadParameter("write 30m, 24h, 7d or all")
    return time.time() - int(match[1]) * _UNITS[match[2]]


since_option: Callable[[Any], Any] = click.option(
    "--since",
    default="24h",
    show_default=True,
    callback=since_of,
    help="How far back: 30m, 24h, 7d, all.",
)
until_option: Callable[[Any], Any] = click.option(
    "--until", callback=_until, help="Up to how far back: 30m, 24h, 7d; default now."
)
