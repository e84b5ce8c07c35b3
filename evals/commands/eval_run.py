"""cascade eval run: from prompts to a page of what was found, in one go."""

import asyncio
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console

from evals.collecting.meter import Meter
from evals.commands.eval_collect import tell
from evals.commands.progress import counting
from evals.commands.tables import show
from evals.files import write_whole
from evals.frontier.known import FrontierError
from evals.frontier.measure import measure
from evals.frontier.page import require_plotly
from evals.frontier.plot import draw
from evals.runs import quickstart
from evals.runs.record import RunError
from evals.runs.report import page
from evals.runs.run import TABLE, Plan
from evals.runs.run import run as whole_run
from serving.commands.options import load
from serving.commands.progress import downloading

PAGE, PICTURE = "report.html", "frontier.png"


@click.command()
@click.argument("name", type=click.Choice(["quickstart"]))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("quickstart"),
    show_default=True,
    help="The folder for all that is found; made where it does not exist.",
)
@click.option(
    "--prompts",
    "count",
    type=click.IntRange(1, 230),
    default=quickstart.PROMPTS,
    show_default=True,
    help="How many are asked; a larger number adds to a smaller one.",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=quickstart.CONFIG,
    help="Another configuration, with a judge `sound` and an estimator `looks`; default the two "
    "embedded models.",
)
def run(name: str, out: Path, count: int, path: Path) -> None:
    """Ask two embedded models the same prompts, compare policies on the answers, and show it all.

    Takes some ten minutes on two cores, after the models were fetched. Run it again to go on where
    it was stopped.
    """
    require_plotly()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{out}: cannot be made: {error.strerror or error}") from None
    console = Console(stderr=True)
    plan = Plan(
        name=name,
        file=load(path),
        judge=quickstart.JUDGE,
        estimator=quickstart.ESTIMATOR,
        prompts=quickstart.prompts(count),
        source=f"{count} prompts of six kinds, on none of which the judge was fitted",
        compared=quickstart.COMPARED,
    )
    meter = Meter()
    with downloading(console) as progress:
        table, report = asyncio.run(
            whole_run(plan, out, meter, lambda tasks: counting(console, tasks), progress)
        )
    show(console, table, out / TABLE)
    write_whole(out / PAGE, page(out))
    if find_spec("matplotlib") is not None:
        with suppress(FrontierError):  # the page says why there is nothing to draw
            draw(out / PICTURE, measure(table))
    console.print(f"The report is {out / PAGE}", highlight=False)
    tell(console, report, meter)
