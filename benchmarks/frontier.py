"""How long it takes to sweep every setting of ten policies, with intervals, by the rows.

    python -m benchmarks.frontier [--rows N]... [--resamples N] [--write]

Each size runs in a process of its own, so that its peak memory is its own: the table is made up
there, with prompts of any difficulty, judged and predicted, no two scores alike. Counted are rows
that are tested; a tenth as many are fitted on, and as many chosen on. With --write the table
replaces that in docs/eval-frontier.md.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from rich.console import Console

from benchmarks.pages import put
from evals.frontier.measure import measure
from evals.panel_report import Printed, as_markdown
from evals.tables import OutcomeTable

PAGE: Final = Path(__file__).parents[1] / "docs" / "eval-frontier.md"
BEGIN: Final = "<!-- python -m benchmarks.frontier --write -->"
END: Final = "<!-- end of speed -->"
ROWS: Final = (10_000, 100_000, 1_000_000)
RESAMPLES: Final = 200
MEBI: Final = 1024


@click.command()
@click.option("--rows", multiple=True, type=click.IntRange(100), default=ROWS, show_default=True)
@click.option("--resamples", type=click.IntRange(1), default=RESAMPLES, show_default=True)
@click.option("--write", is_flag=True, help="Put the table into docs/eval-frontier.md.")
@click.option("--one", type=int, hidden=True, help="Measure one size here and print JSON.")
def main(*, rows: Sequence[int], resamples: int, write: bool, one: int | None) -> None:
    """Measure, print a table, and put it into the page if that is wanted."""
    if one is not None:
        click.echo(json.dumps(measured(one, resamples)))
        return
    found = [_apart(count, resamples) for count in rows]
    text = as_markdown([_table(found, resamples), _machine()])
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
    if write:
        put(PAGE, BEGIN, END, text)


def measured(count: int, resamples: int) -> dict[str, Any]:
    """Seconds, processor seconds and peak memory of one size, in this process."""
    table = made(count)
    wall, used = time.perf_counter(), time.process_time()
    found = measure(table, resamples=resamples)
    return {
        "rows": count,
        "policies": len(found.results),
        "settings": sum(len(each.curve) for each in found.results.values()),
        "seconds": time.perf_counter() - wall,
        "processor": time.process_time() - used,
        "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBI,
    }


def made(count: int, seed: int = 0) -> OutcomeTable:
    """Outcomes of two tiers: count rows to test on, and a tenth as many of either other split."""
    rng = np.random.default_rng(seed)
    rows = count + 2 * (count // 10)
    hard = rng.normal(size=(rows, 1))
    chance = 1.0 / (1.0 + np.exp(2.0 * (hard - [0.0, 1.0])))
    quality = (rng.random((rows, 2)) < chance).astype(np.float64)
    said = np.clip(0.25 + 0.5 * quality + rng.normal(scale=0.2, size=(rows, 2)), 0.0, 1.0)
    said[:, 1] = np.nan
    places = np.arange(rows)
    split = np.where(places < count, "test", np.where(places % 2 == 0, "fit", "choose"))
    return OutcomeTable(
        tiers=("small", "large"),
        ids=places.astype(np.str_),
        groups=(places // 2).astype(np.str_),
        kinds=np.digitize(hard[:, 0], [-1.0, 0.0, 1.0]).astype(np.str_),
        sessions=np.full(rows, "", dtype=np.str_),
        splits=split,
        quality=quality,
        cost=np.array([0.001, 0.004]) * rng.uniform(0.5, 1.5, size=(rows, 2)),
        judged=said,
        judge_cost=np.full((rows, 2), 0.0001),
        predicted=np.clip(chance + rng.normal(scale=0.1, size=(rows, 2)), 0.0, 1.0),
        lengths=np.round(np.exp(rng.normal(5.0 + 0.3 * hard[:, 0]))),
        prompts=[""] * rows,
        source="made-up",
    )


def _apart(count: int, resamples: int) -> dict[str, Any]:
    """The same in a process of its own."""
    call = [sys.executable, "-m", "benchmarks.frontier"]
    more = ["--one", str(count), "--resamples", str(resamples)]
    done = subprocess.run([*call, *more], check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _table(found: Sequence[dict[str, Any]], resamples: int) -> Printed:
    head = (
        "test rows",
        "policies",
        "settings",
        "seconds",
        "processor s",
        "s a million",
        "peak MiB",
    )
    lines = [
        (
            f"{each['rows']:,}",
            str(each["policies"]),
            f"{each['settings']:,}",
            f"{each['seconds']:.1f}",
            f"{each['processor']:.1f}",
            f"{each['processor'] / each['rows'] * 1e6:.0f}",
            f"{each['mebibytes']:,.0f}",
        )
        for each in found
    ]
    return Printed(f"{resamples} resamples", head, lines)


def _machine() -> str:
    cores, (load, _, _) = os.cpu_count(), os.getloadavg()
    return (
        f"Measured on {cores} cores, with a load of {load:.1f} at the end. Seconds are by the "
        "clock; processor seconds are what both cores spent on it, as a whole and for a million "
        "rows."
    )


if __name__ == "__main__":
    main()
