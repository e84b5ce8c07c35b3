"""cascade experiment results: what each arm does, and what it differs by from the control."""

import time
from pathlib import Path

import click
import orjson
from rich.console import Console

from cascade.errors import ConfigError
from serving.commands.log import audit_database, since_of
from serving.commands.options import config_option, json_option, load
from serving.results import Trial, trial_of
from serving.results import results as found_by
from serving.results.period import current
from serving.results.present import results_json, results_view


def _from(context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """The time from which on; None: since the shares last changed."""
    if text is None:
        return None
    return 0.0 if text == "all" else since_of(context, option, text)


@click.command("results")
@click.argument("name", required=False)
@click.option(
    "--since",
    callback=_from,
    help="Count from then on: 24h, 7d, all. Default: since the arms' shares last changed.",
)
@config_option
@json_option
def results(path: Path | None, name: str | None, since: float | None, as_json: bool) -> None:
    """Compare an experiment's arms with its control arm.

    NAME may be left out when there is only one experiment.
    """
    trial = _trial(path, name)
    with audit_database(path) as engine:
        found = found_by(engine, current(engine, trial, time.time(), since=since))
    if as_json:
        click.echo(orjson.dumps(results_json(found), option=orjson.OPT_INDENT_2).decode())
    else:
        Console().print(results_view(found))


def _trial(path: Path | None, name: str | None) -> Trial:
    """The experiment that is meant.

    Raises:
        ConfigError: there is none of that name, or no telling which one is meant.
    """
    config = load(path).config
    known = config.experiments
    if name is None and len(known) == 1:
        name = next(iter(known))
    if name is None or name not in known:
        there = ", ".join(known) or "none"
        said = "name an experiment" if name is None else f"there is no experiment {name!r}"
        raise ConfigError(f"{said}; the configuration has: {there}", param="experiments")
    return trial_of(name, known[name], config)
