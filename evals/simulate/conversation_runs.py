"""Many runs of cells, side by side, and what is finished kept, so that they can be gone on with."""

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from evals.files import ResultFileError, write_whole
from evals.simulate.conversations import Cell, Run, played
from evals.simulate.frontier import Point
from evals.simulate.world import Regime

Job = tuple[Cell, int]
"""A cell and a seed."""


class Kept:
    """A file with a line for each finished run; a line that was cut off is dropped.

    Args:
        path: it need not be there.
        turns: counted in each run; those of other numbers, or of other code, are left alone.

    Raises:
        ResultFileError: the file cannot be read or written, or a line of it is none of ours.
    """

    def __init__(self, path: Path, turns: int) -> None:
        self._path, self._code = path, code()
        self.runs: dict[Job, Run] = {}
        for number, text in enumerate(self._lines(), 1):
            try:
                line = json.loads(text)
                if line["code"] == self._code and line["turns"] == turns:
                    run = _run(line)
                    self.runs[run.cell, run.seed] = run
            except (ValueError, KeyError, TypeError) as error:
                raise ResultFileError(
                    f"{path}, line {number}: is no finished run ({error!r}); remove the line or "
                    "name another file"
                ) from None

    def add(self, run: Run) -> None:
        """Another line."""
        line = {
            "code": self._code,
            "cell": asdict(run.cell),
            "seed": run.seed,
            "turns": run.turns,
            "frontiers": {name: list(map(astuple, ps)) for name, ps in run.frontiers.items()},
        }
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            why = error.strerror or error
            raise ResultFileError(f"{self._path}: cannot be written: {why}") from None

    def _lines(self) -> list[str]:
        try:
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except OSError as error:
            why = error.strerror or error
            raise ResultFileError(f"{self._path}: cannot be read: {why}") from None
        whole, _, cut = text.rpartition("\n")
        if cut:
            write_whole(self._path, f"{whole}\n" if whole else "")
        return whole.splitlines()


def all_played(
    jobs: Sequence[Job],
    *,
    turns: int,
    workers: int,
    kept: Kept | None = None,
    done: Callable[[Run], None],
) -> list[Run]:
    """The runs of the jobs, in their order.

    Args:
        jobs: no two the same.
        turns: that are counted in each.
        workers: processes.
        kept: has some of them, and takes the others as they finish.
        done: is told each run.
    """
    found = {job: run for job, run in (kept.runs if kept else {}).items() if job in set(jobs)}
    for run in found.values():
        done(run)
    for run in _finished([job for job in jobs if job not in found], turns, workers):
        found[run.cell, run.seed] = run
        if kept is not None:
            kept.add(run)
        done(run)
    return [found[job] for job in jobs]


def _finished(jobs: Sequence[Job], turns: int, workers: int) -> Iterator[Run]:
    """Runs as they end."""
    if workers == 1:
        yield from (played(cell, seed, turns) for cell, seed in jobs)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        waiting: list[Future[Run]] = [pool.submit(played, *job, turns) for job in jobs]
        yield from (each.result() for each in as_completed(waiting))
    finally:
        pool.shutdown(cancel_futures=True)


def code() -> str:
    """Tells the code that decides what a run comes to; comments and layout do not count."""
    here = Path(__file__).parent
    domain = here.parents[1] / "cascade"
    files = [here / f"{name}.py" for name in ("truth", "world", "rivals", "play", "conversations")]
    files += [domain / f"{name}.py" for name in ("quote", "quoting", "traffic", "pricing")]
    files += [
        each for part in ("ledger", "policies") for each in sorted((domain / part).glob("*.py"))
    ]
    parsed = [ast.dump(ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    return hashlib.sha256("\n".join(parsed).encode()).hexdigest()[:16]


def _run(line: Mapping[str, Any]) -> Run:
    cell = Cell(**line["cell"] | {"regime": Regime(**line["cell"]["regime"])})
    frontiers = {
        name: [Point(**dict(zip(Point.__slots__, values, strict=True))) for values in points]
        for name, points in line["frontiers"].items()
    }
    return Run(cell=cell, seed=line["seed"], turns=line["turns"], frontiers=frontiers)
