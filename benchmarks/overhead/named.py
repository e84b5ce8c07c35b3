"""`cascade`, with the names of its threads told to the system, so that their time is told apart.

    python -m benchmarks.overhead.named serve ...

Python keeps the names to itself, and the system has room for fifteen letters of each.
"""

import threading
from contextlib import suppress
from pathlib import Path

from serving.cli import main

_run = threading.Thread.run


def run(self: threading.Thread) -> None:
    """Name the thread, then do its work."""
    with suppress(OSError):
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(self.name[:15])
    _run(self)


if __name__ == "__main__":
    threading.Thread.run = run  # type: ignore[method-assign]
    main()
