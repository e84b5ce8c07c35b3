"""Runs the jobs side by side; a spawned process could import nothing from `__main__`."""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, Final

from rich.progress import Progress

from benchmarks.routing_quality.sections import Job, run
from benchmarks.routing_quality.tables import Tables

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

_tables: list[Tables] = []
"""Of a worker process, which is given them once."""


def measured(todo: Sequence[Job], tables: Tables, workers: int) -> list[dict[str, Any]]:
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
