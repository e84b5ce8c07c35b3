"""Before the call, after it, or both: what each wins back of the gap between two models.

    python -m benchmarks.combined [--data FOLDER] [--seeds N] [--json FILE] [--write]

The folder holds RouteLLM's GSM8K table with both models' answers; CASCADE_DATA names it as well.
Three seeds take half an hour on two idle cores. With --write the tables replace those in
docs/combined.md.
"""

import json
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks.combined.jobs import gradings, measured
from benchmarks.combined.page import tables
from benchmarks.pages import put
from benchmarks.routing_quality.__main__ import CACHE
from benchmarks.routing_quality.tables import folder
from cascade.errors import CascadeError
from evals.files import require_folder, write_whole

PAGE: Final = Path(__file__).parents[2] / "docs" / "combined.md"
BEGIN: Final = "<!-- python -m benchmarks.combined --write -->"
END: Final = "<!-- end of combined -->"


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Of the table.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--cache", default=CACHE, type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "json_path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--write", is_flag=True, help="Put the tables into docs/combined.md.")
def main(
    *,
    data: Path | None,
    seeds: int,
    workers: int,
    cache: Path,
    json_path: Path | None,
    write: bool,
) -> None:
    """Measure, print the tables, and put them into the page if that is wanted."""
    try:
        if json_path:
            require_folder(json_path)
        found = gradings(folder(data), cache)
        records = measured(found, seeds, workers)
        if json_path:
            write_whole(json_path, json.dumps(records, indent=1) + "\n")
        text = tables(records)
        Console().print(text, markup=False, highlight=False, soft_wrap=True)
        if write:
            put(PAGE, BEGIN, END, text)
    except CascadeError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
