"""How far a long collection is: bars where someone looks, lines where a log is kept."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINE_SECONDS = 60.0


@contextmanager
def counting(
    console: Console,
    tasks: Sequence[str],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[str], None]]:
    """A callable that counts a task of a tier as done, until the block ends.

    Args:
        console: shows it.
        tasks: the tier of each task to do.
        clock: seconds that only go up.
    """
    totals = Counter(tasks)
    if not console.is_terminal:
        yield _Lines(console, totals, clock)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as bars:
        ids = {tier: bars.add_task(tier, total=n) for tier, n in totals.items()}
        yield lambda tier: bars.advance(ids[tier])


class _Lines:
    """A line a minute, and one at the end of each tier."""

    def __init__(self, console: Console, totals: Counter[str], clock: Callable[[], float]) -> None:
        self._console = console
        self._totals = totals
        self._clock = clock
        self._done: Counter[str] = Counter()
        self._began = self._said = clock()

    def __call__(self, tier: str) -> None:
        self._done[tier] += 1
        now = self._clock()
        if self._done[tier] < self._totals[tier] and now - self._said < LINE_SECONDS:
            return
        self._said = now
        parts = []
        for name, total in self._totals.items():
            done = self._done[name]
            left = (total - done) * (now - self._began) / done / 60 if done else None
            parts.append(f"{name} {done}/{total}" + (f", {left:.0f} min left" if left else ""))
        self._console.print("; ".join(parts), highlight=False)
