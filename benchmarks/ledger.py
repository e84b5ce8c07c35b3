"""What it costs to know what is warm, beside a plain dict of every block: docs/ledger.md.

    python -m benchmarks.ledger [--write]

Time is the processor's, for one call, in turns with the dict's, each with a chain that was made
anew, as for a request that just came; the garbage collector is off meanwhile. Memory is what
Python says it has allocated for a million blocks. With --write the tables replace those in the
page.
"""

import argparse
import gc
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from benchmarks.pages import put
from cascade.caches import CacheCard
from cascade.ledger import Ledger
from cascade.prefix import Chain

PAGE: Final = Path(__file__).parents[1] / "docs" / "ledger.md"
BEGIN: Final = "<!-- python -m benchmarks.ledger --write -->"
END: Final = "<!-- end of ledger -->"
WIDTH: Final = 8
BLOCK: Final = 16
ROUNDS: Final = 1_000
PROMPTS: Final = ((100, 10), (1_250, 20), (6_250, 40))
"""Blocks of a prompt, and the runs of its path: the last is one of 100,000 tokens."""
PRIVATE: Final = (512, 64, 8)
"""Blocks of a conversation that no other shares, where memory is measured."""
SHARED: Final = 125
AMONG: Final = 50
"""Conversations that share a system prompt of 2,000 tokens."""
MILLION: Final = 1_000_000


class Remembers(Protocol):
    """What is measured."""

    def warm(self, chain: Chain) -> int:
        """Tokens of the prompt that are warm."""

    def use(self, chain: Chain) -> None:
        """The prompt is in the cache now."""


class Runs:
    """The ledger, for one tier."""

    def __init__(self) -> None:
        card = CacheCard(kind="blocks", block=BLOCK)
        self._ledger = Ledger({"t": card}, max_blocks=4 * MILLION)

    def warm(self, chain: Chain) -> int:
        """Tokens of the prompt that are warm."""
        return self._ledger.warm("t", chain).tokens

    def use(self, chain: Chain) -> None:
        """The prompt is in the cache now."""
        self._ledger.began("t", chain)


class Digests:
    """The thing to beat: each block's hash with its last use; hashes of each salt by themselves."""

    def __init__(self) -> None:
        self._used: dict[str, dict[bytes, float]] = {}

    def warm(self, chain: Chain) -> int:
        """Tokens of the prompt that are warm, block after block."""
        used, elements, width = self._used.get(chain.salt, {}), chain.elements, chain.width
        count = 0
        for at in range(0, len(elements), width):
            if elements[at : at + width] not in used:
                break
            count += 1
        return int(min(count * chain.block, chain.tokens - 1) // chain.block * chain.block)

    def use(self, chain: Chain) -> None:
        """The prompt is in the cache now."""
        used, elements, width = self._used.setdefault(chain.salt, {}), chain.elements, chain.width
        now = time.monotonic()
        for at in range(0, len(elements), width):
            used[elements[at : at + width]] = now


def main() -> None:
    """Measure and print, and put it into the page if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    text = f"{timed()}\n\n{remembered()}"
    print(text)  # noqa: T201
    if given.write:
        put(PAGE, BEGIN, END, f"\n{text}\n")


def timed() -> str:
    """A table of the time of a lookup and of a use, for prompts of several lengths."""
    lines = [
        "| prompt | | ledger | dict | times as fast |",
        "|---|---|---:|---:|---:|",
    ]
    for blocks, runs in PROMPTS:
        elements, both = prepared(blocks, runs)
        name = f"{blocks * BLOCK:,} tokens, {runs} runs"
        for verb in ("warm", "use"):
            ours, theirs = measure([getattr(each, verb) for each in both], elements)
            ratio = statistics.median(theirs) / statistics.median(ours)
            lines.append(f"| {name} | {verb} | {shown(ours)} | {shown(theirs)} | {ratio:.0f} |")
            name = ""
    note = f"Microseconds, median and 99th percentile of {ROUNDS:,} calls."
    return "\n".join([*lines, "", note])


def prepared(blocks: int, runs: int) -> tuple[bytes, list[Remembers]]:
    """A prompt of which both know everything, and others that part from it on the way."""
    source = random.Random(f"{blocks} {runs}")  # noqa: S311
    elements = source.randbytes(blocks * WIDTH)
    both: list[Remembers] = [Runs(), Digests()]
    each = blocks // runs
    for number in range(1, runs):
        branch = elements[: number * each * WIDTH] + source.randbytes(each * WIDTH)
        for one in both:
            one.use(chain(branch))
    for one in both:
        one.use(chain(elements))
    return elements, both


def measure(calls: Sequence[Callable[[Chain], object]], elements: bytes) -> list[list[float]]:
    """Microseconds of each call, one after the other in turns."""
    taken: list[list[float]] = [[] for _ in calls]
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for call, times in zip(calls, taken, strict=True):
                prompt = chain(bytes(bytearray(elements)))
                start = time.thread_time_ns()
                call(prompt)
                times.append((time.thread_time_ns() - start) / 1_000)
    finally:
        gc.enable()
    return taken


def remembered() -> str:
    """A table of the memory of a million blocks, for conversations of several lengths."""
    lines = [
        "| blocks of a conversation's own | ledger, MB | dict, MB | ledger, B a block | dict |",
        "|---|---:|---:|---:|---:|",
    ]
    for private in PRIVATE:
        ours, theirs = (allocated(make, private) for make in (Runs, Digests))
        lines.append(
            f"| {private} | {ours / 1e6:.1f} | {theirs / 1e6:.1f} "
            f"| {ours / MILLION:.1f} | {theirs / MILLION:.1f} |"
        )
    note = (
        f"A million blocks with hashes of {WIDTH} bytes. {AMONG} conversations at a time share a "
        f"system prompt of {SHARED} blocks."
    )
    return "\n".join([*lines, "", note])


def allocated(make: Callable[[], Remembers], private: int) -> int:
    """Bytes that are held for a million blocks once all prompts are gone."""
    gc.collect()
    tracemalloc.start()
    one = make()
    for elements in conversations(private):
        one.use(chain(elements))
    del elements
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


def conversations(private: int) -> Iterator[bytes]:
    """Prompts of a million different blocks, each used once."""
    source = random.Random(private)  # noqa: S311
    different = 0
    while different < MILLION:
        system = source.randbytes(SHARED * WIDTH)
        different += SHARED
        for _ in range(AMONG):
            if different < MILLION:
                own = min(private, MILLION - different)
                different += own
                yield system + source.randbytes(own * WIDTH)


def chain(elements: bytes) -> Chain:
    """A prompt of those blocks, and of one more token."""
    tokens = len(elements) // WIDTH * BLOCK + 1
    return Chain(elements=elements, width=WIDTH, block=BLOCK, tokens=tokens)


def shown(times: Sequence[float]) -> str:
    """The median and the 99th percentile."""
    return f"{statistics.median(times):.1f}, {statistics.quantiles(times, n=100)[98]:.1f}"


if __name__ == "__main__":
    main()
