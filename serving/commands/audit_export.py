"""cascade audit export."""

from pathlib import Path

import click
import orjson
from rich.console import Console

from serving.commands.log import audit_database, since_option, until_option
from serving.commands.options import config_option, json_option
from serving.commands.progress import counting
from serving.store import export as parquet
from serving.store.formats import moment
from serving.store.ranges import Range


@click.command()
@since_option
@until_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="A folder for three files, or FILE.parquet for one.",
)
@json_option
@config_option
def export(
    *, path: Path | None, since: float | None, until: float | None, out: Path, as_json: bool
) -> None:
    """Write requests, attempts and feedback to Parquet files.

    A folder gets requests.parquet, attempts.parquet and feedback.parquet; in a single file attempts
    and feedback are lists within each request's row.
    """
    span = Range.of(since, until)
    with audit_database(path) as engine:
        console = Console(stderr=True)
        with counting(console, "requests", parquet.count(engine, span)) as done:
            made = parquet.export(engine, out, span, written=done)
    if as_json:
        files = {str(file): file.stat().st_size for file in made.files}
        told = {"requests": made.requests, "since": since, "until": until, "files": files}
        click.echo(orjson.dumps(told).decode())
        return
    for file in made.files:
        click.echo(f"{file} ({file.stat().st_size:,} bytes)")
    click.echo(f"{made.requests:,} requests{_told(since, until)}")


def _told(since: float | None, until: float | None) -> str:
    """Of which time they are, as somebody may have meant all of it."""
    bounds = (("since", since), ("until", until))
    return "".join(f" {name} {moment(at)} UTC" for name, at in bounds if at is not None)
