"""How often the intervals of `cascade eval replay` hold the truth, on logs whose truth is known.

    python -m benchmarks.replay [--logs N] [--page]

In each log hard requests are open more often and right less often, and a session's requests are
alike. Logs differ in what was drawn and in what came of it; the truth is the mean over all of them.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.pages import put
from evals.logged.estimate import Rows, doubly_robust
from evals.panel_report import Printed, as_markdown

PAGE = Path(__file__).parent.parent / "docs" / "eval-replay.md"
MARKS = ("<!-- coverage -->", "<!-- end of coverage -->")
KINDS = (
    (1_500, 0.1, 0.0),
    (1_500, 0.1, 0.4),
    (1_500, 0.05, 0.0),
    (1_500, 0.02, 0.0),
    (6_000, 0.02, 0.0),
)
"""Requests, the share that is drawn, and the share of the draws that is lost."""


class Held(NamedTuple):
    """What came out for one kind of log.

    Attributes:
        share: of the intervals that hold the truth.
        half: half the width of an interval, in the mean.
        off: of the estimates' mean from the truth.
        known_off: the same of the mean of the requests that are known without a draw.
    """

    share: float
    half: float
    off: float
    known_off: float


def main() -> None:
    """Print the table, or put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--logs", type=int, default=1_000)
    parser.add_argument("--page", action="store_true", help="put it into docs/eval-replay.md")
    told = parser.parse_args()
    table = as_markdown([printed(told.logs)])
    if told.page:
        put(PAGE, *MARKS, table)
    print(table)  # noqa: T201 - what it is for


def printed(logs: int) -> Printed:
    """The table over so many logs of each kind."""
    rows = []
    for requests, share, lost in KINDS:
        found = held(range(logs), requests=requests, share=share, lost=lost)
        rows.append(
            (
                f"{requests:,}",
                f"{share:.0%}",
                f"{lost:.0%}",
                f"{found.share:.1%}",
                f"{found.half:.3f}",
                f"{found.off:+.3f}",
                f"{found.known_off:+.3f}",
            )
        )
    head = (
        "requests",
        "drawn",
        "draws lost",
        "intervals that hold the truth",
        "half of their width",
        "mean error",
        "of the requests known without a draw",
    )
    return Printed(f"{logs:,} logs of each kind", head, rows)


def held(seeds: range, *, requests: int, share: float, lost: float) -> Held:
    """Estimates over logs of one kind."""
    expected, inside, halves, off, known_off = truth(), 0, [], [], []
    for seed in seeds:
        log, _ = made_up(seed, requests=requests, share=share, lost=lost)
        found = doubly_robust(log)
        inside += found.low <= expected <= found.high
        halves.append((found.high - found.low) / 2)
        off.append(found.mean - expected)
        known_off.append(float(log.values[log.chance >= 1.0].mean()) - expected)
    means = [float(np.nanmean(each)) for each in (halves, off, known_off)]
    return Held(inside / len(seeds), *means)


def made_up(
    seed: int, *, requests: int = 1_500, share: float = 0.1, lost: float = 0.0
) -> tuple[Rows, float]:
    """A log, and the mean over its own requests of what is to be estimated."""
    rng = np.random.default_rng(seed)
    sessions = requests // 3
    session = rng.integers(sessions, size=requests)
    mood = rng.normal(size=sessions)[session]
    hard = rng.random(requests)
    right = (rng.random(requests) < _chance(hard, mood)).astype(float)
    known = rng.random(requests) > hard
    drawn = ~known & (rng.random(requests) < share) & (rng.random(requests) >= lost)
    chance = np.where(known, 1.0, np.where(drawn, share, 0.0))
    log = Rows(
        values=np.where(chance > 0, right, math.nan),
        chance=chance,
        strata=np.full(requests, "large"),
        clusters=np.char.add("s", session.astype(str)),
        features=np.stack([hard, hard**2], axis=1),
    )
    return log, float(right.mean())


def truth(seed: int = 9, requests: int = 400_000) -> float:
    """The mean over all logs that may come."""
    rng = np.random.default_rng(seed)
    return float(_chance(rng.random(requests), rng.normal(size=requests)).mean())


def _chance(hard: np.ndarray, mood: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(4 * hard - 2 - 0.7 * mood)))


if __name__ == "__main__":
    main()
