"""`python -m evals`: measuring what the models and policies are worth.

Sub-commands are imported only when they are called. A command of its own beside `cascade`, because
the service knows nothing of evals.
"""

import sys
from importlib import import_module
from typing import Final

import click

from cascade.errors import CascadeError

COMMANDS: Final = {
    "collect": ("evals.commands.collect:collect", "Ask the models and judges each prompt once."),
    "show": ("evals.commands.show:show", "How right and how fast stored answers are."),
    "text": ("evals.commands.text:text", "How well answers are judged by their text alone."),
    "regrade": ("evals.commands.regrade:regrade", "Score stored answers again."),
}


class LazyGroup(click.Group):
    """Knows its commands' names and imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order in which they are needed."""
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
def evals() -> None:
    """Measure models, judges and policies."""


def main() -> None:
    """Run the command; a CascadeError is a sentence, not a traceback."""
    try:
        evals(prog_name="python -m evals")
    except CascadeError as error:
        click.secho(f"evals: {error.message}", err=True, fg="red")
        sys.exit(1)


if __name__ == "__main__":
    main()
