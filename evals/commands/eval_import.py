"""cascade eval import: outcomes made elsewhere, checked and written in one form."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from evals.commands.tables import loaded, require_parquet, show, table_options
from evals.tables import write


@click.command("import")
@table_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the table goes, a .parquet; written whole or not at all.",
)
def import_table(out: Path, **options: Any) -> None:
    """Check TABLE (JSON Lines, CSV or Parquet) and write it as Parquet for the other commands."""
    require_parquet(out)
    found = loaded(**options)
    write(found, out)
    show(Console(stderr=True), found, out)
