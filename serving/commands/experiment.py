"""cascade experiment: see and change experiments; a module for each kind of sub-command."""

from typing import Final

import click

from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "list": ("serving.commands.experiment_show:list_all", "What runs, and what overrides it."),
    "show": ("serving.commands.experiment_show:show", "One of them, and who changed it."),
    "set": ("serving.commands.experiment_set:change", "Change weights, ramp, start or end."),
    "stop": ("serving.commands.experiment_set:stop", "Let nobody in any more."),
    "results": ("serving.commands.experiment_results:results", "Which arm is better."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
def experiment() -> None:
    """See and change experiments while the service runs."""
