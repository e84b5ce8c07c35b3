"""Progress in the terminal: bars where someone looks, lines where a log is kept."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from serving.models.sources import Progress as ProgressCall

STEPS = 10


@contextmanager
def stepping(console: Console, label: str, total: int) -> Iterator[Callable[[], None]]:
    """A callable that counts one of so many steps as done, until the block ends."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # Where nobody looks, the bar as it is at the end is all that is printed.
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(label, total=total)
        yield lambda: bars.advance(task)


@contextmanager
def counting(console: Console, label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A callable that counts so many more of a known number as done, until the block ends."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as bars:
        task = bars.add_task(label, total=total)
        yield lambda number: bars.advance(task, number)


@contextmanager
def downloading(console: Console) -> Iterator[ProgressCall]:
    """A progress callable whose work is shown until the block ends."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield _Bars(bars)


class _Bars:
    """One bar a label."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, label: str, done_bytes: int, total_bytes: int) -> None:
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=total_bytes)
        self._bars.update(self._tasks[label], completed=done_bytes, total=total_bytes)


class _Lines:
    """One line a tenth."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: dict[str, int] = {}

    def __call__(self, label: str, done_bytes: int, total_bytes: int) -> None:
        step = STEPS * done_bytes // max(1, total_bytes)
        if self._said.get(label) == step:
            return
        self._said[label] = step
        share = f"{100 * step // STEPS:3d} % of {total_bytes / 1e6:,.0f} MB"
        self._console.print(f"{label}: {share}", highlight=False)
