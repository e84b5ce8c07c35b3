"""cascade eval: what policies cost and score on stored answers, and which one to run."""

from typing import Final

import click

from serving.commands.lazy import LazyGroup

COMMANDS: Final = {
    "run": ("evals.commands.eval_run:run", "From prompts to the report, in one go."),
    "collect": ("evals.commands.eval_collect:collect", "Ask every tier each prompt once."),
    "import": ("evals.commands.eval_import:import_table", "Take in outcomes made elsewhere."),
    "frontier": ("evals.commands.eval_frontier:frontier", "Quality against cost, by policy."),
    "tune": ("evals.commands.eval_tune:tune", "Choose a policy's setting, with a bound."),
    "compare": ("evals.commands.eval_compare:compare", "Is policy A better than policy B?"),
    "replay": ("evals.commands.eval_replay:replay", "Another policy over the audit log."),
    "drift": ("evals.commands.eval_drift:drift", "Has traffic left what was learned from?"),
    "report": ("evals.commands.eval_report:report", "One HTML page of what was found."),
    "simulate": ("evals.commands.simulate:simulate", "Run what serves on made-up traffic."),
}


@click.group(name="eval", cls=LazyGroup, lazy=COMMANDS)
def evaluate() -> None:
    """Measure quality against cost on stored answers, and choose a policy from it."""
