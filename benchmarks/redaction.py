"""What redaction costs, and how often it takes an ordinary number for one that identifies somebody.

    python -m benchmarks.redaction [--page docs/audit.md]

The numbers are drawn from a fixed seed and stand in a sentence of their own; a share is of 3,000.
The texts have 100,000 characters; their times are of one look each, on one thread.
"""

import argparse
import hashlib
import random
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.pages import put
from serving.store.redaction import Redactor

BEGIN, END = "<!-- python -m benchmarks.redaction -->", "<!-- end of redaction -->"
TEXTS, SIZE = 3_000, 100_000
MILLION, BILLION = 10**6, 10**9


def ordinary(draw: random.Random) -> Iterator[tuple[str, Callable[[], str]]]:
    """Texts with numbers that identify nobody, by what they are."""
    small = draw.randrange

    def year() -> str:
        return str(small(1900, 2030))

    def below() -> str:
        return str(small(10 ** small(1, 7)))

    def moment() -> str:
        day = f"{small(1, 29):02d}.{small(1, 13):02d}.{year()}"
        return f"{day} {small(24):02d}:{small(60):02d}:{small(60):02d}"

    def of(digits: int) -> str:
        return f"order {small(10 ** (digits - 1), 10**digits)}"

    yield "a number below a million", lambda: f"it took {small(MILLION)} of them"
    yield (
        "thousands kept apart by blanks: 1 234 567",
        lambda: f"{small(1, 999)} {small(1000):03d} {small(1000):03d} records",
    )
    yield "two years: in 2024 and 2025", lambda: f"in {year()} and {year()}"
    yield "four years in a row", lambda: " ".join(year() for _ in range(4))
    yield "a date and a time", moment
    yield "seconds since 1970", lambda: f"ts={small(1_400_000_000, 1_800_000_000)}"
    yield "milliseconds since 1970", lambda: f"ts={small(1_400 * BILLION, 1_800 * BILLION)}"
    yield "an IP address", lambda: ".".join(str(small(256)) for _ in range(4))
    yield "a UUID", lambda: str(uuid.UUID(int=draw.getrandbits(128)))
    yield "a SHA-256 in hex", lambda: hashlib.sha256(draw.randbytes(8)).hexdigest()
    yield "five decimals below one", lambda: " ".join(f"{draw.random():.4f}" for _ in range(5))
    yield (
        "latitude and longitude",
        lambda: f"{draw.uniform(-90, 90):.6f} {draw.uniform(-180, 180):.6f}",
    )
    yield "eight numbers below a million, commas", lambda: ", ".join(below() for _ in range(8))
    yield "eight numbers below a million, blanks", lambda: " ".join(below() for _ in range(8))
    yield (
        "an ISBN",
        lambda: f"978-{small(10)}-{small(100):02d}-{small(MILLION):06d}-{small(10)}",
    )
    for digits in (8, 10, 11, 12, 16):
        yield f"a number of {digits} digits", partial(of, digits)


def taken(redactor: Redactor, make: Callable[[], str]) -> float:
    """Share of texts of which anything is taken out."""
    texts = [make() for _ in range(TEXTS)]
    return sum(redactor.text(text) != text for text in texts) / TEXTS


def long_texts(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Long texts, by what is in them."""

    def whole(piece: Callable[[], str]) -> str:
        text = ""
        while len(text) < SIZE:
            text += piece()
        return text[:SIZE]

    yield "prose", whole(lambda: "The quick brown fox saw it in 2024 and again in 2025. ")
    yield "digits and blanks", whole(lambda: "12 345 678 ")
    yield "a table of numbers", whole(lambda: f"{draw.randrange(10 ** draw.randrange(1, 8))} ")
    yield "one e-mail address after another", whole(lambda: "kim@example.com ")


def main() -> None:
    """Measure, print, and put it into the page if that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path, help="the page that the tables are put into")
    page = parser.parse_args().page
    redactor, draw = Redactor(), random.Random(7)  # noqa: S311 - made-up numbers
    lines = ["| a number that identifies nobody | is taken out |", "|---|---|"]
    for name, make in ordinary(draw):
        lines.append(f"| {name} | {taken(redactor, make):.1%} |")
    lines += ["", f"| {SIZE:,} characters of | seconds |", "|---|---|"]
    for name, text in long_texts(draw):
        began = time.perf_counter()
        redactor.text(text)
        lines.append(f"| {name} | {time.perf_counter() - began:.2f} |")
    print("\n".join(lines))  # noqa: T201
    if page is not None:
        put(page, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    main()
