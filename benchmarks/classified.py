"""How long it takes to find what is classified, and to guess its difficulty without a model.

    python -m benchmarks.classified [--write]

With --write the table replaces the one in docs/classified.md. Run it on a machine that does nothing
else; the garbage collector is off while a call is timed.
"""

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from cascade.types import ChatRequest
from classifiers.heuristic import HeuristicEstimator
from classifiers.text import asked

PAGE: Final = Path(__file__).parents[1] / "docs" / "classified.md"
BEGIN: Final = "<!-- python -m benchmarks.classified --write -->"
END: Final = "<!-- end -->"
ROUNDS: Final = 2_000
LONG_ROUNDS: Final = 200
_LONG_CHARACTERS: Final = 100_000

HARD = "Rewrite the tokenizer so that it handles nested templates and reports each error's column."


def said(role: str, text: str) -> dict[str, Any]:
    """One message."""
    return {"role": role, "content": text}


def requests() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Kinds of conversations that clients send."""
    answer = "The lexer now keeps a stack of open templates. " * 20
    worked = [said("assistant", ""), {"role": "tool", "content": "ok " * 1_000}] * 200
    reminder = "<system-reminder>\nThe list of tasks is empty.\n</system-reminder>\n"
    rules = said("system", "Follow the rules of the house. " * 5_300)
    yield "a question", [said("user", "What is 347 * 892?")]
    yield "the same in Korean", [said("user", "347 곱하기 892는 얼마인가요?")]
    yield (
        "yes, after 40 turns",
        [
            *[said("user", HARD), said("assistant", answer)] * 20,
            said("user", "yes"),
        ],
    )
    yield (
        "commit it, after 400 messages of an agent",
        [
            said("user", HARD),
            *worked,
            said("assistant", answer),
            said("user", "commit it"),
        ],
    )
    yield "under a system prompt of 40,000 tokens", [rules, said("user", HARD)]
    yield "among 30 reminder blocks", [said("user", f"{reminder * 15}{HARD}{reminder * 15}")]
    yield (
        "behind a log of 300,000 characters",
        [said("user", f"{'12:00:01 worker 7 restarted ' * 11_000}\nWhich one restarts most?")],
    )


def main() -> None:
    """Measure, print a table, and put it into the page if that is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    write = parser.parse_args().write
    table = "\n".join(rows())
    print(table)  # noqa: T201
    if write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def rows() -> Iterator[str]:
    """The table, line by line; milliseconds."""
    estimator = HeuristicEstimator(tiers={"small": [0.9, 0.3], "large": [0.97, 0.6]})
    yield "| a request | extraction, median | p99 | heuristic in all, median | p99 |"
    yield "|---|---|---|---|---|"
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        for name, messages in requests():
            request = ChatRequest(id="r", messages=messages)
            length = sum(len(message["content"]) for message in messages[-1:])
            rounds = LONG_ROUNDS if length > _LONG_CHARACTERS else ROUNDS
            text = timed(partial(asked, messages), rounds)
            guess = timed(partial(guessed, loop, estimator, request), rounds)
            yield f"| {name} | {text} | {guess} |"


def guessed(
    loop: asyncio.AbstractEventLoop, estimator: HeuristicEstimator, request: ChatRequest
) -> None:
    """An estimate as the engine gets it, through an event loop."""
    loop.run_until_complete(estimator.estimate([request]))


def timed(call: Callable[[], object], rounds: int) -> str:
    """Median and 99th percentile of a call, in milliseconds."""
    call()
    seconds = []
    gc.disable()
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    gc.enable()
    p99 = statistics.quantiles(seconds, n=100)[98]
    return f"{statistics.median(seconds) * 1e3:.3f} | {p99 * 1e3:.3f}"


if __name__ == "__main__":
    main()
