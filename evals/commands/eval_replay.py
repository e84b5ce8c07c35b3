"""cascade eval replay: what another policy would have cost and scored on the traffic of the log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from evals.logged.replay import replay as replayed
from evals.logged.replay_report import plain, report
from evals.panel_report import on_screen
from serving.commands.log import audit_database, since_of
from serving.commands.options import config_option, json_option, load, wire

week_option: Callable[[Any], Any] = click.option(
    "--since",
    default="7d",
    show_default=True,
    callback=since_of,
    help="How far back: 30m, 24h, 7d, all.",
)


@click.command()
@click.option("--policy", required=True, help="A policy of the configuration, or a tier.")
@week_option
@click.option(
    "--judge",
    help="Whose word on the quality counts where nobody gave feedback. Default: the only judge of "
    "shadow calls that the policy does not act on.",
)
@config_option
@json_option
def replay(
    path: Path | None, policy: str, since: float | None, judge: str | None, as_json: bool
) -> None:
    """Ask POLICY what it would have done with the requests of the audit log.

    What the tiers that it would have asked had said is known of the calls that were made, and of
    shadow calls, which stand for those that were not. Nothing is asked of any model.
    """
    snapshot = wire(load(path))
    with audit_database(path) as engine:
        found = replayed(engine, snapshot, policy, since=since, judge=judge)
    if as_json:
        click.echo(orjson.dumps(plain(found)).decode())
        return
    on_screen(Console(), report(found))
