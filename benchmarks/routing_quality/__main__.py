"""How well the product's own models of difficulty route, beside what needs no model.

    python -m benchmarks.routing_quality [--data FOLDER] [--only SECTION] [--json FILE] [--write]

The folder holds the tables (RouteLLM's MMLU and GSM8K, LLMRouter's nine models); CASCADE_DATA names
it as well. Everything takes under half an hour on two idle cores, embedding included, which is kept
on disk. With --write the tables replace those in docs/routing-quality.md.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks.pages import put
from benchmarks.routing_quality.page import tables as tables_of
from benchmarks.routing_quality.sections import SECTIONS, baselines, jobs
from benchmarks.routing_quality.tables import folder, load
from benchmarks.routing_quality.workers import measured
from cascade.errors import CascadeError
from evals.files import require_folder, write_whole

PAGE: Final = Path(__file__).parents[2] / "docs" / "routing-quality.md"
BEGIN: Final = "<!-- python -m benchmarks.routing_quality --write -->"
END: Final = "<!-- end of routing quality -->"
CACHE: Final = Path.home() / ".cache" / "cascade" / "embeddings"


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
        records = [*baselines(tables, sections), *measured(jobs(sections, seeds), tables, workers)]
        if json_path:
            write_whole(json_path, json.dumps(records, indent=1) + "\n")
        text = tables_of(records)
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if write:
            put(PAGE, BEGIN, END, text)
    except CascadeError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
