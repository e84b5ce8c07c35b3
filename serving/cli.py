"""The command `cascade`. Sub-commands are imported only when they are called."""

import sys
from importlib import import_module
from typing import Final

import click

from cascade.errors import CascadeError

COMMANDS: Final = {
    "serve": ("serving.commands.serve:serve", "Start the models and serve requests."),
    "models": ("serving.commands.models:models", "Fetch models and see how they are."),
    "audit": ("serving.commands.audit:audit", "Read the audit log."),
    "judges": ("evals.commands.judges:judges", "Fit a panel of judges and certify it."),
    "config": ("serving.commands.config:config", "Check or show the configuration."),
    "db": ("serving.commands.db:db", "Create or check the audit database."),
    "version": ("serving.commands.version:version", "Print the version."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports them when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order in which a new user needs them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that is asked for."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cascade() -> None:
    """Answer chat requests with the cheapest model that is good enough."""


def main() -> None:
    """Run the command; a CascadeError is a sentence, not a traceback."""
    try:
        cascade()
    except CascadeError as error:
        click.secho(f"cascade: {error.message}", err=True, fg="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
