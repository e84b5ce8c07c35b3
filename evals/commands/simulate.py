"""cascade simulate: the shipped ledger, rules, prices and intervals on made-up traffic."""

import click

from evals.commands.simulate_conversations import conversations
from evals.commands.simulate_experiments import experiments
from evals.commands.simulate_replicas import replicas


@click.group()
def simulate() -> None:
    """Run what serves against made-up traffic."""


simulate.add_command(replicas)
simulate.add_command(conversations)
simulate.add_command(experiments)
