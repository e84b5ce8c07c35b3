"""How much CPU time a service takes for a request, thread by thread.

Unlike the time that a request takes it hardly depends on what else the machine does, so it shows a
change of a few percent where a clock does not.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

_SETTLE_SECONDS = 2.0  # until what was asked last is in the audit log as well
_LEAST_US = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Microseconds of a request by thread, of one service under one load."""

    service: str
    how: str
    connections: int
    threads: Mapping[str, float]


def spent(pid: int, load: Callable[[], int]) -> dict[str, float]:
    """Microseconds of a request by thread, those of its child processes included.

    Args:
        pid: of the service.
        load: asks it, and tells how often.
    """
    before, requests = _nanoseconds(pid), load()
    time.sleep(_SETTLE_SECONDS)
    after = _nanoseconds(pid)
    each = {name: (ns - before.get(name, 0)) / 1e3 / requests for name, ns in after.items()}
    return {name: us for name, us in each.items() if us >= _LEAST_US}


def table(found: list[Spent]) -> Table:
    """A line for each thread, and one for all of a service."""
    shown = Table(
        title="CPU time; microseconds a request",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in ("answer", "at once", "service", "thread", "us"):
        shown.add_column(column, justify="right" if column in {"at once", "us"} else "left")
    for one in found:
        row = (one.how, str(one.connections), one.service)
        shown.add_row(*row, "all", f"{sum(one.threads.values()):,.0f}")
        for name, us in sorted(one.threads.items(), key=lambda each: -each[1]):
            shown.add_row("", "", "", name, f"{us:,.0f}")
    return shown


def _nanoseconds(pid: int) -> dict[str, int]:
    """On a core so far, by the threads' names; the first thread of a process is its main one."""
    found: dict[str, int] = defaultdict(int)
    for process in _family(pid):
        for task in Path(f"/proc/{process}/task").iterdir():
            main = task.name == str(process)
            name = "main" if main else (task / "comm").read_text().strip()
            found[name] += int((task / "schedstat").read_text().split()[0])
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(int(child))
