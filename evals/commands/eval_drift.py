"""cascade eval drift: whether traffic has left what the estimator and the judges were fitted on."""

import time
from collections.abc import Collection
from pathlib import Path

import click
import orjson
from rich.console import Console

from cascade.errors import ConfigError
from cascade.snapshot import Snapshot
from evals.commands.eval_replay import week_option
from evals.logged.drift import Learned
from evals.logged.drift import drift as found_drift
from evals.logged.drift_report import plain, report
from evals.panel_report import on_screen
from judges.calibrated import CalibratedJudge
from judges.panel import PanelJudge
from serving.commands.log import audit_database, since_of
from serving.commands.options import config_option, json_option, load, wire
from serving.config import ConfigFile

LEARNED = "learned"


@click.command()
@week_option
@click.option(
    "--against",
    "earlier",
    default="35d",
    show_default=True,
    callback=since_of,
    help="Hold it against the requests from then on until --since: 7d, 35d, all.",
)
@click.option("--estimator", help="A learned estimator. Default: the only one.")
@config_option
@json_option
def drift(
    path: Path | None,
    since: float | None,
    earlier: float | None,
    estimator: str | None,
    as_json: bool,
) -> None:
    """Hold recent requests against what was learned from, and against those before them.

    Says in the end whether to train the estimator or to certify the judges anew. Nothing is asked
    of any model.
    """
    since = 0.0 if since is None else since
    if earlier is not None and earlier > since:
        raise click.BadParameter("it must be longer ago than --since", param_hint="--against")
    file = load(path)
    snapshot = wire(file)
    learned = learned_of(file, estimator)
    with audit_database(path) as engine:
        found = found_drift(
            engine, since, earlier=earlier, learned=learned, calibrated=calibrated(snapshot)
        )
    if as_json:
        click.echo(orjson.dumps({"at": time.time(), **plain(found)}).decode())
        return
    on_screen(Console(), report(found))


def learned_of(file: ConfigFile, name: str | None) -> Learned | None:
    """A learned estimator of the configuration; None when there is none.

    Raises:
        ConfigError: there is no such one, there are several and none is named, or its artifact
            cannot be read.
    """
    config = file.config
    there = [each for each, entry in config.estimators.items() if entry.type == LEARNED]
    if name is None and not there:
        return None
    if name is None and len(there) > 1:
        raise ConfigError(f"there are several learned estimators: {', '.join(there)}; name one")
    if name is not None and name not in there:
        known = ", ".join(there) or "none"
        raise ConfigError(f"there is no learned estimator {name!r}; there are: {known}")
    name = name or there[0]
    from classifiers.artifact import load as load_artifact  # noqa: PLC0415 - its package, if used

    where = file.path.parent / config.estimators[name].options["artifact"]
    manifest, model = load_artifact(where)
    return Learned(
        name=name,
        policies=[each for each, entry in config.policies.items() if entry.estimator == name],
        embedded_by=manifest.embedding.model if manifest.embedding else "",
        domain=model.domain,
        inside=manifest.domain.quantile if manifest.domain else 1.0,
    )


def calibrated(snapshot: Snapshot) -> Collection[str]:
    """Names of the judges whose scores are meant to be probabilities."""
    return [
        name
        for name, judge in snapshot.judges.items()
        if isinstance(judge, CalibratedJudge)
        or (isinstance(judge, PanelJudge) and judge.model is not None)
    ]
