"""cascade train posterior: from stored outcomes to what is believed after a judge."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import orjson
from rich.console import Console

from cascade.errors import ConfigError
from cascade.posterior import Identity, Model
from cascade.posterior.artifact import content_of
from cascade.protocols import Judge
from evals.commands.panels import prompts_option
from evals.commands.progress import counting
from evals.datasets import load as load_prompts
from evals.files import require_folder, write_whole
from evals.outcomes_lines import read
from evals.panel_report import on_screen
from evals.training.posterior.card import card, report
from evals.training.posterior.collected import (
    Collected,
    assembled,
    folds_of,
    heads,
    ordered,
    verdicts,
)
from evals.training.posterior.estimates import Named, estimates
from evals.training.posterior.fit import Recipe, steps
from evals.training.posterior.rows import JudgedPrompt
from evals.training.posterior.table import read_judged
from evals.training.posterior.train import train
from evals.training.rows import TrainingError
from evals.training.sources import from_outcomes, is_outcomes
from serving import config as cfg
from serving.commands.options import config_option, json_option
from serving.commands.options import load as load_config
from serving.config import ConfigFile
from serving.identities import estimator_identity, judge_identity
from serving.wiring import Wiring

CARD: Final = ".md"
NONE: Final = "none"
_NUMBERS: Final = re.compile(r"\[\s+((?:-?[\d.e+-]+|null)(?:,\s+(?:-?[\d.e+-]+|null))*)\s+\]")


class Gathered(NamedTuple):
    """Rows, and whose they are."""

    rows: Sequence[JudgedPrompt]
    models: Mapping[str, str]
    judges: Mapping[str, Identity]
    estimator: Identity


@click.command()
@click.argument("table", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="[TIER=]JUDGE",
    help="Whose verdicts are learned from: one judge for all tiers (default: sound), or, given "
    "several times, one a tier.",
)
@click.option(
    "--estimator",
    default=None,
    help="Whose estimates; `none` for none. Default: the configuration's first.",
)
@prompts_option
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Of cross-validation."
)
@click.option(
    "--features",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Features of the verdicts that a head may look at besides their scores.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the artifact goes, a .json; its card goes beside it.",
)
@config_option
@json_option
def posterior(table: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Fit what is believed of each tier once some were tried and judged, on TABLE.

    TABLE is what `python -m evals collect` wrote, with a judge and an estimator of the
    configuration; or JSON Lines with estimates, verdicts and grades of your own.
    """
    if out.suffix != ".json":
        raise TrainingError(f"{out}: the artifact is a file that ends in .json")
    require_folder(out)
    console = Console(stderr=as_json)
    recipe = Recipe(folds=options["folds"], features=options["features"], seed=options["seed"])
    gather = _from_outcomes if is_outcomes(table) else _from_table
    found = gather(table, options, recipe, console)
    used = [row for row in found.rows if row.split == "fit"]
    tasks = ["fitting"] * len(steps(used, list(found.models)))
    with counting(console, tasks) as count:
        model = train(
            found.rows,
            found.models,
            judges=found.judges,
            estimator=found.estimator,
            recipe=recipe,
            done=partial(count, "fitting"),
        )
    write_whole(out, _readable(model))
    write_whole(out.with_suffix(CARD), card(model, out.name))
    if as_json:
        click.echo(orjson.dumps(content_of(model)["manifest"]).decode())
        return
    on_screen(console, report(model))
    console.print(f"{out}: {out.stat().st_size // 1024} KiB; {out.with_suffix(CARD)} says more")


def _from_table(
    table: Path, options: Mapping[str, Any], recipe: Recipe, console: Console
) -> Gathered:
    del recipe, console
    names = _judges(options["judges"])
    rows, tiers = read_judged(table, names.get("", "judge"))
    estimator = options["estimator"]
    return Gathered(
        rows=rows,
        models=dict.fromkeys(tiers, ""),
        judges={t: Identity(name=name) for t, name in _by_tier(names, tiers).items()},
        estimator=Identity(name="" if estimator in {None, NONE} else estimator),
    )


def _from_outcomes(
    table: Path, options: Mapping[str, Any], recipe: Recipe, console: Console
) -> Gathered:
    outcomes, file = read(table), load_config(options["path"])
    prompts = {prompt.id: prompt for prompt in load_prompts(options["prompts_file"])}
    source = ordered(from_outcomes(outcomes, prompts))
    judges, named = _built(file, options["estimator"])
    names = _by_tier(_judges(options["judges"]), source.tiers)
    if unknown := [name for name in names.values() if name not in judges]:
        there = ", ".join(judges) or NONE
        raise ConfigError(f"{file.path}: there is no judge {unknown[0]!r}; there are: {there}")
    given = Collected(
        source=source, outcomes=outcomes, prompts=prompts, folds=folds_of(source, recipe)
    )
    tasks = ["estimates"] * (recipe.folds if named.learned else 0)
    for tier, name in names.items():
        tasks += [f"verdicts on {tier}"] * heads(judges[name], tier)
    with counting(console, tasks) as count:
        told = estimates(source, named, file, given.folds, partial(count, "estimates"))
        said = {
            tier: verdicts(given, judges[name], tier, partial(count, f"verdicts on {tier}"))
            for tier, name in names.items()
        }
    base = file.path.parent
    return Gathered(
        rows=assembled(source, told, said),
        models=source.models,
        judges={t: judge_identity(file.config, base, judges, name) for t, name in names.items()},
        estimator=estimator_identity(file.config, named.name, named.estimator),
    )


def _judges(given: Sequence[str]) -> dict[str, str]:
    """Judge by tier; by the empty text where it is for all."""
    found: dict[str, str] = {}
    for each in given or ("sound",):
        tier, is_pair, name = each.partition("=")
        key, value = (tier, name) if is_pair else ("", each)
        if not value or found.setdefault(key, value) != value:
            raise TrainingError(f"--judge {each}: give one judge for all tiers, or TIER=JUDGE")
    if "" in found and len(found) > 1:
        raise TrainingError("--judge: give one judge for all tiers, or one a tier, and not both")
    return found


def _by_tier(names: Mapping[str, str], tiers: Sequence[str]) -> dict[str, str]:
    if unknown := [tier for tier in names if tier and tier not in tiers]:
        raise TrainingError(
            f"--judge {unknown[0]}=...: there is no such tier; there are: {', '.join(tiers)}"
        )
    return {tier: name for tier in tiers if (name := names.get(tier) or names.get("", ""))}


def _built(file: ConfigFile, name: str | None) -> tuple[Mapping[str, Judge], Named]:
    """The judges of a configuration, and one of its estimators.

    Raises:
        ConfigError: there is no such estimator, or the configuration cannot be built.
    """
    known = file.config.estimators
    if name is None:
        name = next(iter(known), NONE)
    if name != NONE and name not in known:
        there = ", ".join(known) or NONE
        raise ConfigError(f"{file.path}: there is no estimator {name!r}; there are: {there}")
    chosen = None if name == NONE else name
    tier = next(iter(file.config.tiers))
    alone = cfg.Policy.model_validate({"type": "fixed", "tier": tier, "estimator": chosen})
    update = {"policies": {"posterior": alone}, "experiments": {}}
    try:
        snapshot = Wiring(file.config.model_copy(update=update), file.path.parent).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None
    return snapshot.judges, Named(chosen, snapshot.arms["posterior"].estimator)


def _readable(model: Model) -> str:
    """The artifact as JSON to be read: indented, a list of numbers on one line."""
    text = json.dumps(content_of(model), indent=1)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"
