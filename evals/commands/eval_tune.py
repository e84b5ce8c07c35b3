"""cascade eval tune: a policy's setting for a budget or a quality, and what can be said of it."""

from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from evals.choice.block import Block, Names, block, put, yaml
from evals.choice.goals import ChoiceError, Goal
from evals.choice.tune_report import plain, refusal, remarks, report
from evals.choice.tuned import tune as tuned
from evals.commands.tables import loaded, table_options
from evals.files import require_folder
from evals.frontier.policies import replayed
from evals.panel_report import on_screen
from evals.tables import OutcomeTable
from serving.commands.options import json_option

NEEDED = "NAME_OF_THE_ESTIMATOR"


@click.command("tune")
@table_options
@click.option("--policy", default="utility", show_default=True, help="Whose setting.")
@click.option("--budget", type=float, help="Dollars a request, in the mean: the best for these.")
@click.option(
    "--quality-at-least",
    "quality",
    type=float,
    help="A share of the best single model's quality, such as 0.98: the cheapest that has it.",
)
@click.option(
    "--max-regret",
    "regret",
    type=float,
    help="How much less than the best single model's the quality may be, such as 0.02.",
)
@click.option(
    "--probability",
    type=float,
    default=0.9,
    show_default=True,
    help="With which what is said of the quality is right.",
)
@click.option(
    "--candidates",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Settings to try on the test rows, from strict to loose.",
)
@click.option("--name", default="tuned", show_default=True, help="Of the policy in the block.")
@click.option("--judge", default="sound", show_default=True, help="Whose scores the table holds.")
@click.option("--estimator", default=None, help="Whose predictions the table holds.")
@click.option(
    "--write",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A configuration to put the block into, or a new file; default: it is printed.",
)
@json_option
def tune(  # noqa: PLR0917 - click passes options by name
    policy: str,
    budget: float | None,
    quality: float | None,
    regret: float | None,
    probability: float,
    candidates: int,
    name: str,
    judge: str,
    estimator: str | None,
    path: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose a policy's setting on TABLE's choose rows, and bound its quality on the test rows.

    Ends with the block for cascade.yaml, or says why the rows do not carry what was asked for.
    """
    goal = _goal(budget, quality, regret, 1.0 - probability)
    if path is not None:
        require_folder(path)
    if path is not None and estimator is None and policy in {"utility", "classifier"}:
        raise ChoiceError(f"policy {policy} goes by predictions: say whose by --estimator")
    table = loaded(**options)
    found = tuned(table, policy, goal, candidates=candidates)
    names = Names(policy=name, judge=judge, estimator=estimator or NEEDED)
    run, why = _block(table, policy, found.chosen.knob, names)
    if as_json:
        values = {**plain(found, table.tiers), "block": run, "no_block": why}
        click.echo(orjson.dumps(values).decode())
    else:
        on_screen(Console(), report(found, table.tiers))
    if refused := refusal(found):
        raise ChoiceError(refused)
    if run is None:
        _unrunnable(why, path)
        return
    said = remarks(found, table.source)
    if path is not None:
        put(path, name, run, said)
        click.echo(f"{path}: policy {name}", err=as_json)
    elif not as_json:
        click.echo("\npolicies:\n" + yaml(name, run, said), nl=False)


def _unrunnable(why: str, path: Path | None) -> None:
    """Say why there is no block; where one was to be written, that is a failure."""
    if path is not None:
        raise ChoiceError(why)
    click.echo(why, err=True)


def _goal(budget: float | None, quality: float | None, regret: float | None, delta: float) -> Goal:
    given = {"budget": budget, "quality": quality, "regret": regret}
    stated = {kind: value for kind, value in given.items() if value is not None}
    if len(stated) != 1:
        raise click.UsageError("give one of --budget, --quality-at-least and --max-regret")
    match stated:
        case {"budget": value}:
            return Goal(kind="budget", value=value, delta=delta)
        case {"quality": value}:
            return Goal(kind="quality", value=value, delta=delta)
        case _:
            return Goal(kind="regret", value=stated["regret"], delta=delta)


def _block(table: OutcomeTable, policy: str, knob: float, names: Names) -> tuple[Block | None, str]:
    """The block; or nothing, and why there is none."""
    try:
        return block(replayed(table)[policy], knob, table.tiers, names), ""
    except ChoiceError as error:
        return None, error.message
