"""cascade eval report: one page of what a table or a run's folder holds."""

from pathlib import Path

import click

from evals.files import require_folder, write_whole
from evals.runs.report import page


@click.command()
@click.argument("source", type=click.Path(path_type=Path), metavar="TABLE|FOLDER")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    help="Where the page goes; it needs nothing else, and no network.",
)
def report(source: Path, out: Path) -> None:
    """Write one HTML page: the models, quality against cost, a policy chosen, and is it better."""
    require_folder(out)
    write_whole(out, page(source))
    click.echo(str(out), err=True)
