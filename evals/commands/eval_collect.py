"""cascade eval collect: every tier's answer to each prompt, scored, judged, priced, as a table."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from cascade.pricing import PriceCard
from evals.collecting.asking import Report
from evals.collecting.gathering import Collection, gathered
from evals.collecting.logged import LOGGED, logged_prompts, with_keys
from evals.collecting.meter import Meter
from evals.collecting.models import Wanted
from evals.collecting.outcomes import texts_of
from evals.collecting.prompt_sets import Reading, fields_of, prompt_set, refuse_without_grader
from evals.commands.progress import counting
from evals.commands.tables import require_parquet, show
from evals.datasets import Prompt
from evals.gather import drawn
from evals.outcomes_lines import read
from evals.scorers import MODELLED, SCORERS
from evals.tables import SplitRule, TableError, write
from evals.tables.prices import stated
from serving.commands.options import config_option, load
from serving.commands.progress import downloading

ANSWERS = ".answers.jsonl"
SHOWN_FAILURES = 5


@click.command()
@click.argument("source", metavar="PROMPTS")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the table goes, a .parquet. Answers are kept beside it, in a .answers.jsonl.",
)
@click.option(
    "--column",
    "pairs",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="A prompt's field by the column that holds it, as prompt=question.",
)
@click.option(
    "--scorer",
    type=click.Choice([*SCORERS, *MODELLED]),
    default="exact",
    show_default=True,
    help="Of prompts that name none.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Of answers to prompts that state no limit.",
)
@click.option("--tier", "tiers", multiple=True, help="Ask this tier; default all, cheapest first.")
@click.option(
    "--service",
    default="",
    metavar="URL",
    help="Ask a running service for its tiers by name, at an address that ends in /v1.",
)
@click.option("--api-key", envvar="CASCADE_EVALS_KEY", show_envvar=True, help="For --service.")
@click.option("--judge", help="The configuration's judge whose scores are wanted as well.")
@click.option("--estimator", help="The configuration's estimator, for what was to be expected.")
@click.option("--grader", help="The tier whose model compares answers for the scorer `judge`.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="TIER=INPUT/OUTPUT",
    help="Dollars per million tokens instead of the configuration's; INPUT/CACHED/OUTPUT as well.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Take over what `python -m evals collect` kept of the same prompts and models.",
)
@click.option("--max-usd", type=click.FloatRange(0), help="Stop before this is exceeded.")
@click.option("--max-requests", type=click.IntRange(0), help="Stop before this is exceeded.")
@click.option(
    "--concurrency", type=click.IntRange(1), default=1, show_default=True, help="Prompts at once."
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Only so many prompts, drawn by their ids; a larger number adds to a smaller one.",
)
@config_option
def collect(path: Path | None, source: str, out: Path, **options: Any) -> None:
    """Ask every tier each prompt once, and write what came back as an outcome table.

    PROMPTS is a .jsonl, .csv or .parquet, a data set as hf:NAME, hf:NAME@SPLIT or
    hf:NAME:CONFIG@SPLIT, or `audit` for prompts that the audit log keeps. Run it again to go on
    where it was stopped.
    """
    require_parquet(out)
    console = Console(stderr=True)
    wanted = _wanted(path, options)
    everything = _prompts(source, wanted, options)
    prompts = _picked(everything, options["limit"])
    refuse_without_grader(prompts, options["grader"])
    meter = Meter(
        most_dollars=None if options["max_usd"] is None else Decimal(str(options["max_usd"])),
        most_requests=options["max_requests"],
    )
    collection = Collection(
        wanted=wanted,
        prompts=prompts,
        journal=out.with_suffix(ANSWERS),
        source=out.name,
        concurrency=options["concurrency"],
        split=SplitRule(),
        kept=(read(options["answers"]), everything) if options["answers"] else None,
    )
    with downloading(console) as progress:
        table, report = asyncio.run(
            gathered(collection, meter, lambda tasks: counting(console, tasks), progress)
        )
    write(table, out, texts_of(report.rows, table.tiers))
    show(console, table, out)
    tell(console, report, meter)


def _wanted(path: Path | None, options: dict[str, Any]) -> Wanted:
    cards = stated(options["prices"])
    for tier, price in cards.items():
        if not isinstance(price, PriceCard):
            raise TableError(f"{tier}={price}: collected answers are priced by INPUT/OUTPUT tokens")
    return Wanted(
        file=load(path),
        tiers=options["tiers"],
        prices={tier: card for tier, card in cards.items() if isinstance(card, PriceCard)},
        service=options["service"],
        api_key=options["api_key"],
        estimator=options["estimator"],
        judge=options["judge"],
        grader=options["grader"],
    )


def _prompts(source: str, wanted: Wanted, options: dict[str, Any]) -> list[Prompt]:
    reading = Reading(
        columns=fields_of(options["pairs"]),
        scorer=options["scorer"],
        max_tokens=options["max_tokens"],
    )
    if source == LOGGED:
        return logged_prompts(wanted.file.audit_url, reading, with_keys(), _left_out)
    return prompt_set(source, reading)


def _left_out(count: int, logged: int) -> None:
    click.echo(
        f"{count} of {logged} logged prompts cannot be asked again and are left out", err=True
    )


def _picked(prompts: list[Prompt], limit: int | None) -> list[Prompt]:
    chosen = {prompt.id for prompt in drawn(prompts)[:limit]}
    return [prompt for prompt in prompts if prompt.id in chosen]


def tell(console: Console, report: Report, meter: Meter) -> None:
    """What the run cost, and what is missing."""
    unknown = f", {meter.unknown} of them at unknown cost" if meter.unknown else ""
    console.print(f"{meter.requests} calls, ${meter.dollars:.6f}{unknown}", highlight=False)
    if report.left:
        console.print(
            f"The budget is spent: {report.left} answers or verdicts are left. Run it again with a "
            "larger one to get them.",
            highlight=False,
        )
    for failure in report.failures[:SHOWN_FAILURES]:
        console.print(failure, markup=False, highlight=False)
    if report.failures:
        raise click.ClickException(
            f"{len(report.failures)} answers or verdicts are missing; run it again to get them"
        )
