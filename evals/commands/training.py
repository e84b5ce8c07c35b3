"""cascade train: models learned from outcomes, of what is believed before and after a call."""

from typing import Final

import click

from serving.commands.lazy import LazyGroup

DEFAULT: Final = "estimator"
COMMANDS: Final = {
    DEFAULT: (
        "evals.commands.train:train",
        "Which tier will do, before any call; what is meant when neither is named.",
    ),
    "posterior": (
        "evals.commands.train_posterior:posterior",
        "What a judge's verdict says of each tier.",
    ),
}


class _Training(LazyGroup):
    """Takes what names no command for arguments of the default one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default's name in front where there is none."""
        if not args or args[0] not in {*COMMANDS, *ctx.help_option_names}:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Training, lazy=COMMANDS)
def train() -> None:
    """Learn from outcomes which tier will do, and what a judge's verdict says of each."""
