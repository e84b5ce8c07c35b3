"""How well the product's own models of difficulty route, beside what needs no model.

    python -m benchmarks.routing_quality [--data FOLDER] [--only SECTION] [--json FILE] [--write]

The folder holds the tables (RouteLLM's MMLU and GSM8K, LLMRouter's nine models); CASCADE_DATA names
it as well. Everything takes under half an hour on two idle cores, embedding included, which is kept
on disk. With --write the tables replace those in docs/routing-quality.md.
"""

import json
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks.routing_quality.page import tables as tables_of
from benchmarks.routing_quality.sections import SECTIONS, Job, baselines, jobs, run
from benchmarks.routing_quality.tables import Tables, folder, load
from cascade.errors import CascadeError
from evals.files import require_folder, write_whole

PAGE: Final = Path(__file__).parents[2] / "docs" / "routing-quality.md"
BEGIN: Final = "<!-- python -m benchmarks.routing_quality --write -->"
END: Final = "<!-- end of routing quality -->"
CACHE: Final = Path.home() / ".cache" / "cascade" / "embeddings"
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_tables: list[Tables] = []
"""Of a worker process, which is given them once."""


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Of the tables.")
@click.option("--only", multiple=True, type=click.Choice(SECTIONS), help="A section; repeatable.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--cache", default=CACHE, type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "json_path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--write", is_flag=True, help="Put the tables into docs/routing-quality.md.")
def main(
    *,
    data: Path | None,
    only: Sequence[str],
    seeds: int,
    workers: int,
    cache: Path,
    json_path: Path | None,
    write: bool,
) -> None:
    """Measure, print the tables, and put them into the page if that is wanted."""
    sections = only or SECTIONS
    console = Console()
    if write and only:
        raise click.UsageError("--write wants all sections: leave --only away")
    try:
        if json_path:
            require_folder(json_path)
        found = folder(data)
        tables = load(found, cache)
        records = [*baselines(tables, sections), *_measured(jobs(sections, seeds), tables, workers)]
        if json_path:
            write_whole(json_path, json.dumps(records, indent=1) + "\n")
        text = tables_of(records)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if write:
            _write(text)
    except CascadeError as error:
        raise click.ClickException(str(error)) from None


def _measured(todo: Sequence[Job], tables: Tables, workers: int) -> list[dict[str, Any]]:
    """What comes out of each job, in the order of their names, whichever ends first."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress() as progress,
        ProcessPoolExecutor(workers, spawn, _keep, (tables,)) as pool,
    ):
        bar = progress.add_task("Fitting", total=len(todo))
        running = {pool.submit(_run, job): at for at, job in enumerate(todo)}
        found: dict[int, dict[str, Any]] = {}
        for done in as_completed(running):
            found[running[done]] = done.result()
            progress.advance(bar)
    records = [found[at] for at in sorted(found)]
    return sorted(records, key=lambda each: (each["section"], each["target"], each["head"]))


def _keep(tables: Tables) -> None:
    _tables[:] = [tables]


def _run(job: Job) -> dict[str, Any]:
    return run(job, _tables[0])


def _write(text: str) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    write_whole(PAGE, f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
