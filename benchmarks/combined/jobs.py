"""The gradings of the table, and the fits side by side; `__main__` cannot be spawned from."""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track

from benchmarks.combined.page import TITLES, Record, record
from benchmarks.combined.told import told
from benchmarks.routing_quality.tables import GSM8K, load
from benchmarks.routing_quality.workers import THREADS
from evals.text_judging import AnswerPair, load_pairs
from evals.training.rows import Rows


class Graded(NamedTuple):
    """The table in one grading."""

    rows: Rows
    pairs: Sequence[AnswerPair]


class Job(NamedTuple):
    """One measurement."""

    grading: str
    seed: int
    graded: Graded


def gradings(data: Path, cache: Path) -> dict[str, Graded]:
    """The table as it is graded, without the rows that are graded wrongly, and regraded.

    A grader that compares texts takes "$20.00" for another number than 20.
    """
    loaded = load(data, cache)
    pairs = load_pairs(data / GSM8K)
    again = [pair.regraded() for pair in pairs]
    same = np.flatnonzero([old == new for old, new in zip(pairs, again, strict=True)])
    return {
        "graded": Graded(loaded.gsm8k, pairs),
        "without": Graded(loaded.gsm8k.take(same), [pairs[i] for i in same]),
        "regraded": Graded(loaded.regraded, again),
    }


def measured(found: dict[str, Graded], seeds: int, workers: int) -> list[Record]:
    """What comes out of each grading and seed, in their order."""
    todo = [Job(name, seed, found[name]) for name, seed in product(TITLES, range(seeds))]
    os.environ.update(dict.fromkeys(THREADS, "1"))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn) as pool:
        return list(track(pool.map(_run, todo), "Fitting", total=len(todo)))


def _run(job: Job) -> Record:
    rows, pairs = job.graded
    return record(job.grading, job.seed, rows, told(rows, pairs, seed=job.seed))
