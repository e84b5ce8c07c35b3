"""The command `cascade`. Sub-commands are imported only when they are called."""

import sys
from typing import Final

import click

from cascade.errors import CascadeError
from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "serve": ("serving.commands.serve:serve", "Start the models and serve requests."),
    "models": ("serving.commands.models:models", "Fetch models and see how they are."),
    "cache": ("serving.commands.cache:cache", "What prompt caches save, and when they pay."),
    "experiment": ("serving.commands.experiment:experiment", "See and change experiments."),
    "pin": ("serving.commands.pin:pin", "Send everything to one tier."),
    "drain": ("serving.commands.drain:drain", "Send nothing to a tier."),
    "audit": ("serving.commands.audit:audit", "Read the audit log."),
    "alerts": ("serving.commands.alerts:alerts", "See what somebody should look at."),
    "judges": ("evals.commands.judges:judges", "Fit a panel of judges and certify it."),
    "eval": ("evals.commands.eval:evaluate", "Quality against cost, and a policy chosen from it."),
    "train": ("evals.commands.training:train", "Learn which tier will do, from outcomes."),
    "simulate": ("evals.commands.simulate:simulate", "Run what serves on made-up traffic."),
    "config": ("serving.commands.config:config", "Check or show the configuration."),
    "db": ("serving.commands.db:db", "Create or check the audit database."),
    "version": ("serving.commands.version:version", "Print the version."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
