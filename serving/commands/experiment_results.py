"""cascade experiment results: what each arm does, and what it differs by from the control."""

import time
from pathlib import Path

import click
import orjson
from rich.console import Console
from sqlalchemy import Engine

from cascade.errors import ConfigError
from serving.commands.log import audit_database, since_of
from serving.commands.options import config_option, json_option, load
from serving.results import Trial, trial_of
from serving.results.kept import Computed, compute, keep, kept
from serving.results.period import current
from serving.results.present import results_json, results_view
from serving.store.formats import moment, plain


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
@click.option("--fresh", is_flag=True, help="Compute now, however recent what is kept is.")
@config_option
@json_option
def results(
    path: Path | None, name: str | None, since: float | None, *, fresh: bool, as_json: bool
) -> None:
    """Compare an experiment's arms with its control arm.

    NAME may be left out when there is only one experiment.
    """
    filed, now = _trial(path, name), time.time()
    with audit_database(path) as engine:
        trial = current(engine, filed, now, since=since)
        found = _computed(engine, trial) if since is not None else _last(engine, trial, fresh=fresh)
    if as_json:
        said = {**results_json(found.results), "as_of": found.at, "took_seconds": found.took}
        click.echo(orjson.dumps(said, option=orjson.OPT_INDENT_2).decode())
        return
    console = Console()
    console.print(results_view(found.results))
    if found.at < now:
        age = f"{now - found.at:.0f} s ago"
        console.print(plain(f"As of {moment(found.at)} UTC, {age}; --fresh computes now.", "dim"))


def _last(engine: Engine, trial: Trial, *, fresh: bool) -> Computed:
    """What is kept, or what is computed now and kept for the next who asks."""
    known = None if fresh else kept(engine, trial)
    if known is not None and known.recent(time.time()):
        return known
    found = _computed(engine, trial)
    keep(engine, found)
    return found


def _computed(engine: Engine, trial: Trial) -> Computed:
    """Computed now, with a sign of life for who waits at a terminal."""
    with Console(stderr=True).status("adding up the requests"):
        return compute(engine, trial)


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
