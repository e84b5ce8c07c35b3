"""cascade train: from outcomes to a model of difficulty that the estimator `learned` applies."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from classifiers.artifact import EmbeddingIdentity, Manifest, save
from classifiers.chances import Target
from classifiers.text import Extraction
from evals.datasets import TASKS
from evals.datasets import load as load_prompts
from evals.files import require_folder, write_whole
from evals.outcomes_lines import read as read_outcomes
from evals.tables.columns import columns
from evals.training.card import card
from evals.training.encoding import embedding_model
from evals.training.extracting import of_log, stated
from evals.training.fit import HeadName, Recipe
from evals.training.from_audit import from_audit
from evals.training.rows import Rows, TrainingError
from evals.training.sources import Source, from_outcomes, is_outcomes, rows_of
from evals.training.table import read_table
from evals.training.train import train as fit_and_measure
from serving.commands.options import config_option, json_option
from serving.commands.options import load as load_config
from serving.store.database import engine_for

CARD = ".md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is learned from.

    Attributes:
        models: by tier, the model whose answers the rows are about.
        embedding: whose vectors they hold; None without any.
        extraction: what of each request they were read from.
    """

    rows: Rows
    models: Mapping[str, str]
    embedding: EmbeddingIdentity | None
    extraction: Extraction


@click.command()
@click.argument(
    "table", required=False, type=click.Path(path_type=Path, dir_okay=False), metavar="[TABLE]"
)
@click.option("--from-audit", is_flag=True, help="Learn from the audit log and its feedback.")
@click.option(
    "--judge",
    help="With --from-audit: a judge of shadow calls, whose word on every tier's answer is a label "
    "where nobody gave feedback.",
)
@click.option(
    "--column",
    "pairs",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Which column is what: prompt, group, kind, split, tag.NAME; any other name is a tier, "
    "the cheapest first. May be given several times.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="TIER=MODEL",
    help="The model whose answers a tier's column is about.",
)
@click.option(
    "--prompts",
    type=click.Path(path_type=Path, dir_okay=False),
    default=TASKS,
    help="The prompt set, where TABLE is what `python -m evals collect` wrote.",
)
@click.option(
    "--embedder",
    default=None,
    help="An embedder of the configuration; `none` for features alone. Default: its first, or the "
    "one that comes with Cascade.",
)
@click.option(
    "--text",
    "text",
    multiple=True,
    metavar="NAME=VALUE",
    help="What of a request is looked at, in training and when it serves: turns, ask_tokens, "
    "context_tokens, system_tokens, code_tokens; markers, wrappers, notices, one text each time. "
    "May be given several times (docs/classified.md).",
)
@click.option("--head", type=click.Choice(get_args(HeadName)), default="blend", show_default=True)
@click.option(
    "--target", type=click.Choice(get_args(Target)), default="difference", show_default=True
)
@click.option(
    "--components",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Main axes of the embeddings that are looked at.",
)
@click.option("--features/--no-features", default=True, help="Look at the cheap features as well.")
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Of cross-validation."
)
@click.option(
    "--inside",
    type=click.FloatRange(0.5, 1.0),
    default=0.95,
    show_default=True,
    help="Share of requests like the training rows that count as inside the domain; 1 switches the "
    "check off.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the manifest goes, a .json; the arrays and the model card go beside it.",
)
@config_option
@json_option
def train(path: Path | None, out: Path, as_json: bool, **options: Any) -> None:
    """Fit a model of difficulty on TABLE, or on the audit log.

    TABLE is JSON Lines, CSV or Parquet with one row a prompt and a column of labels from 0 to 1 for
    each tier, or what `python -m evals collect` wrote.
    """
    if out.suffix != ".json":
        raise TrainingError(f"{out}: the manifest is a file that ends in .json")
    require_folder(out)
    console = Console(stderr=as_json)
    recipe = Recipe(
        head=options["head"],
        target=options["target"],
        components=options["components"],
        features=options["features"],
        inside=options["inside"],
        seed=options["seed"],
    )
    found = _gathered(path, options, console)
    with _bar(console, "fitting and cross-validating", options["folds"]) as advance:
        manifest, model = fit_and_measure(
            found.rows,
            recipe,
            models=found.models,
            embedding=found.embedding,
            extraction=found.extraction,
            count=options["folds"],
            done=lambda: advance(1),
        )
    save(out, manifest, model)
    write_whole(out.with_suffix(CARD), card(manifest, out.name))
    if as_json:
        click.echo(orjson.dumps(manifest.origin.model_dump()).decode())
    else:
        _show(console, manifest, out)


def _gathered(path: Path | None, options: Mapping[str, Any], console: Console) -> Gathered:
    """The rows, whatever they come from."""
    table, name = options["table"], options["embedder"]
    if (table is None) is not options["from_audit"]:
        raise TrainingError("give a TABLE to learn from, or --from-audit, and not both")
    if options["from_audit"]:
        if options["text"]:
            raise TrainingError(
                "--text does not go with --from-audit: the log holds what was looked at already"
            )
        return _from_log(path, embedded=name != "none", judge=options["judge"], console=console)
    if options["judge"]:
        raise TrainingError("--judge goes with --from-audit")
    extraction = stated(options["text"])
    source = _source(table, options)
    model = None if name == "none" else embedding_model(path, name)
    with _bar(console, "embedding", len(source.lines) if model else 0) as advance:
        rows = rows_of(source, None if model is None else model.encode, advance, extraction)
    identity = None
    if model is not None:
        identity = EmbeddingIdentity(model=model.model, dimensions=model.dimensions)
    return Gathered(rows=rows, models=source.models, embedding=identity, extraction=extraction)


def _source(table: Path, options: Mapping[str, Any]) -> Source:
    if is_outcomes(table):
        prompts = {prompt.id: prompt for prompt in load_prompts(options["prompts"])}
        return from_outcomes(read_outcomes(table), prompts)
    lines = read_table(table, columns(options["pairs"]))
    tiers = list(lines[0].labels)
    models = columns(options["models"]).tiers
    if unknown := models.keys() - set(tiers):
        raise TrainingError(f"--model {min(unknown)}: there is no such tier; {', '.join(tiers)}")
    return Source(lines=lines, tiers=tiers, models=models)


def _from_log(
    path: Path | None, *, embedded: bool, judge: str | None, console: Console
) -> Gathered:
    file = load_config(path)
    tiers = {name: tier.served_model or "" for name, tier in file.config.tiers.items()}
    extraction = of_log(file)
    engine = engine_for(file.audit_url)
    try:
        logged = from_audit(engine, list(tiers), embeddings=embedded, judge=judge)
    finally:
        engine.dispose()
    for why, count in logged.skipped.items():
        console.print(f"[yellow]{count} requests skipped:[/] {why}", highlight=False)
    rows = logged.rows
    identity = None
    if rows.embeddings is not None:
        width = int(rows.embeddings.shape[1])
        identity = EmbeddingIdentity(model=logged.embedded_by, dimensions=width)
    return Gathered(rows=rows, models=tiers, embedding=identity, extraction=extraction)


@contextmanager
def _bar(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Progress where somebody looks; a log gets one line."""
    if not total:
        yield lambda _: None
        return
    if not console.is_terminal:
        console.print(f"{what}: {total}", highlight=False)
        yield lambda _: None
        return
    columns_shown = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns_shown, console=console) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)


def _show(console: Console, manifest: Manifest, out: Path) -> None:
    metrics = manifest.origin.metrics
    table = Table(title="share of the gap won back (APGR), 95 % interval")
    table.add_column("sent up")
    parts = [part for part in ("cross_validated", "test") if "apgr" in metrics.get(part, {})]
    for part in parts:
        table.add_column(f"{part.replace('_', ' ')}, n={metrics[part]['n']}", justify="right")
    for order in ("random", "length", "kind", "model", "oracle"):
        cells = [_interval(metrics[part]["apgr"].get(order)) for part in parts]
        if any(cells):
            table.add_row(order, *cells)
    if parts:
        console.print(table)
    size = (out.stat().st_size + out.with_suffix(".safetensors").stat().st_size) // 1024
    console.print(f"{out}: {size} KiB with its arrays; {out.with_suffix(CARD)} says more")


def _interval(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    middle, low, high = value
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"
