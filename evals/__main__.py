"""`python -m evals`: measuring what the models and policies are worth.

Sub-commands are imported only when they are called. A command of its own beside `cascade`, because
the service knows nothing of evals.
"""

import sys
from typing import Final

import click

from cascade.errors import CascadeError
from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "collect": ("evals.commands.collect:collect", "Ask the models and judges each prompt once."),
    "show": ("evals.commands.show:show", "How right and how fast stored answers are."),
    "text": ("evals.commands.text:text", "How well answers are judged by their text alone."),
    "static": ("evals.training.static:static", "Make static embeddings of a sentence encoder."),
    "regrade": ("evals.commands.regrade:regrade", "Score stored answers again."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
