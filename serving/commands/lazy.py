"""A group of commands that are imported only when they are called, so that help comes at once."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

EXTRAS = {
    "cel": "rules",
    "scipy": "fit",
    "sklearn": "fit",
    "openai": "evals",
    "plotly": "evals",
    "polars": "evals",
    "pyarrow": "evals",
    "safetensors": "train",
}
"""By a package that not every installation has, the extra that brings it."""


class LazyGroup(click.Group):
    """Knows its commands' names and imports a command when it is called.

    Args:
        lazy: by name, "module:function" and one line of help, in the order in which a new user
            needs them.
        options: click's own.
    """

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in order."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that is asked for."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            raise click.ClickException(
                f"{cmd_name} needs the package {package}, which is not installed: "
                f"pip install 'cascade-router[{EXTRAS[package]}]'"
            ) from None
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])
