"""Lets the event loop in while rows are worked on: it shares the interpreter with the threads.

Without a pause a thread keeps the interpreter for milliseconds, in which nobody is answered; but a
pause makes the system change threads twice, which is dearer than a row's work.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

_T = TypeVar("_T")

_AT_ONCE: Final = 8


def breathing(rows: Iterable[_T]) -> Iterator[_T]:
    """The rows, with a pause after every few of them."""
    for count, row in enumerate(rows, 1):
        yield row
        if count % _AT_ONCE == 0:
            time.sleep(0)
