"""python -m evals collect: the answers, samples and verdicts of a prompt set, resumable."""

import asyncio
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
from rich.console import Console

from cascade.protocols import Backend
from evals import gather
from evals.commands.progress import counting
from evals.datasets import TASKS, DatasetError, Prompt, load
from evals.judging import JUDGES, judgements
from evals.models import Source, identity, running, source
from evals.outcomes import Manifest, prompts_sha256
from evals.outcomes_file import OutcomesFile
from serving.commands.progress import downloading
from serving.models.launch import usable_cores

TIERS = ("small=qwen2.5-coder-0.5b", "large=qwen2.5-coder-1.5b")
SHOWN_FAILURES = 5

Phase = Callable[[Mapping[str, Backend], OutcomesFile], list[gather.Task]]
"""The tasks of a phase, for the backends by tier and the file with what there is."""


@click.command()
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--prompts",
    "prompts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=TASKS,
    help="The prompt set; default the one of six kinds.",
)
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    default=TIERS,
    help="TIER=MODEL to start a model here, TIER=MODEL@URL for one that runs; cheapest first.",
)
@click.option(
    "--phases",
    default="answers",
    help=f"Which of {','.join(gather.PHASES)}, with commas.",
)
@click.option(
    "--judges", default=",".join(JUDGES), help=f"Which of {','.join(JUDGES)}, in the phase judges."
)
@click.option("--only", multiple=True, help="Only prompts whose id begins so.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Only so many, drawn by their ids; a larger number adds to a smaller one.",
)
@click.option("--note", default="", help="About the machine, for the manifest.")
@click.option("--api-key", envvar="CASCADE_EVALS_KEY", show_envvar=True, help="For addresses.")
def collect(  # noqa: PLR0917 - click passes options by name
    out: Path,
    prompts_file: Path,
    tiers: Sequence[str],
    phases: str,
    judges: str,
    only: Sequence[str],
    limit: int | None,
    note: str,
    api_key: str | None,
) -> None:
    """Ask each tier and judge once, and append what comes back to OUT (.jsonl).

    Run it again to go on where it was stopped.
    """
    wanted = _chosen("--phases", phases, gather.PHASES)
    asked = _chosen("--judges", judges, JUDGES)
    everything = load(prompts_file)
    prompts = _picked(everything, only, limit)
    sources = [source(text) for text in tiers]
    console = Console(stderr=True)
    manifest = _manifest(prompts_file, everything, sources, note, console)
    with OutcomesFile(out, manifest) as file:
        models = running(sources, api_key)
        plan = _plans(wanted, prompts, asked)
        failures = asyncio.run(_collect(plan, models, file, console))
    for failure in failures[:SHOWN_FAILURES]:
        console.print(failure, markup=False, highlight=False)
    if failures:
        raise click.ClickException(f"{len(failures)} rows are missing; run it again to get them")


async def _collect(
    phases: Mapping[str, Phase],
    models: AbstractAsyncContextManager[Mapping[str, Backend]],
    file: OutcomesFile,
    console: Console,
) -> list[str]:
    async with models as tiers:
        tasks: list[gather.Task] = []
        for name, phase in phases.items():
            found = phase(tiers, file)
            left = sum(task.key not in file.rows for task in found)
            console.print(f"{name}: {len(found) - left} rows there, {left} to go")
            tasks += found
        todo = [task.tier for task in tasks if task.key not in file.rows]
        with counting(console, todo) as done:
            report = await gather.run(tasks, file, done)
    return report.failures


def _plans(
    phases: Sequence[str], prompts: Sequence[Prompt], judges: Sequence[str]
) -> dict[str, Phase]:
    known: dict[str, Phase] = {
        "answers": lambda tiers, _: gather.answers(tiers, prompts),
        "samples": lambda tiers, _: gather.samples(tiers, prompts, tier=next(iter(tiers))),
        "judges": lambda tiers, file: judgements(tiers, prompts, file, judges),
    }
    return {name: known[name] for name in phases}


def _chosen(option: str, text: str, known: Sequence[str]) -> list[str]:
    """The names with commas between them, in the order in which they are known."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}", param_hint=option)
    return [name for name in known if name in names]


def _picked(prompts: Sequence[Prompt], only: Sequence[str], limit: int | None) -> list[Prompt]:
    found = [p for p in prompts if not only or p.id.startswith(tuple(only))]
    if not found:
        raise DatasetError(f"no prompt's id begins with {' or '.join(only)}")
    chosen = {prompt.id for prompt in gather.drawn(found)[:limit]}
    return [prompt for prompt in found if prompt.id in chosen]


def _manifest(
    file: Path, prompts: Sequence[Prompt], sources: list[Source], note: str, console: Console
) -> Manifest:
    with downloading(console) as progress:
        identities = {source.tier: identity(source, progress) for source in sources}
    machine = f"{platform.machine()}, {usable_cores()} cores, Python {platform.python_version()}"
    return Manifest(
        prompts=file.name,
        prompts_sha256=prompts_sha256(prompts),
        tiers=identities,
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"{machine}, {sys.platform}" + (f"; {note}" if note else ""),
        cascade=version("cascade-router"),
    )
