"""Options and loading that several commands share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from cascade.errors import ConfigError
from cascade.snapshot import Snapshot
from serving.config import ConfigFile, find

config_option: Callable[[Any], Any] = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration; default $CASCADE_CONFIG or ./cascade.yaml.",
)
json_option: Callable[[Any], Any] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for machines."
)


def load(path: Path | None) -> ConfigFile:
    """The configuration file, its shape checked.

    Raises:
        ConfigError: it cannot be used; says which line.
    """
    return ConfigFile(find(path))


def wire(file: ConfigFile, launched: Mapping[str, Mapping[str, str]] | None = None) -> Snapshot:
    """The snapshot that a configuration describes.

    Raises:
        ConfigError: it cannot work; says which line.
    """
    from serving.wiring import Wiring  # noqa: PLC0415 - all backends and judges, if they are used

    try:
        return Wiring(file.config, file.path.parent, launched).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def audit_url(path: Path | None) -> str:
    """The audit database that a configuration names."""
    return load(path).audit_url
