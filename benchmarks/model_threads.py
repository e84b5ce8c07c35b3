"""How fast the two embedded models are, alone and at the same time, by threads a server.

    python -m benchmarks.model_threads [--tokens N]

Run it on a machine that does nothing else. Each cell is answer tokens a second of one request;
memory is what both processes hold at the end.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.types import ChatRequest
from serving.models.catalogue import CATALOGUE
from serving.models.fetch import ensure
from serving.models.fleet import Fleet, prepare
from serving.models.home import home, models_folder
from serving.models.launch import Launch, usable_cores

PROMPT = "Tell a long story about a lighthouse keeper and the sea."
ROUNDS = 3


def main() -> None:
    """Measure one and as many threads as there are cores, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=64)
    tokens = parser.parse_args().tokens
    for model in CATALOGUE.values():
        ensure(model, home())
    choices = sorted({1, usable_cores()})
    table = Table(title=f"tokens a second on {usable_cores()} cores, answers of {tokens} tokens")
    sizes = [name.rpartition("-")[2] for name in CATALOGUE]
    for name in ("threads each", *sizes, "both at once", "memory"):
        table.add_column(name, justify="right")
    for threads in track(choices, "measuring", console=Console(stderr=True)):
        table.add_row(str(threads), *asyncio.run(_measure(threads, tokens)))
    Console().print(table)


async def _measure(threads: int, tokens: int) -> list[str]:
    launches = [Launch(tier=name, model=name, threads=threads) for name in CATALOGUE]
    with tempfile.TemporaryDirectory() as folder:
        models_folder(Path(folder)).symlink_to(models_folder(home()))
        fleet = prepare(launches, Path(folder))
        await fleet.start()
        try:
            alone = [await _speeds(fleet, [name], tokens) for name in CATALOGUE]
            together = await _speeds(fleet, list(CATALOGUE), tokens)
            memory = " and ".join(f"{_resident_gb(fleet, name):.1f} GB" for name in CATALOGUE)
        finally:
            await fleet.stop()
    return [*(one[0] for one in alone), " and ".join(together), memory]


async def _speeds(fleet: Fleet, names: Sequence[str], tokens: int) -> list[str]:
    """The best of a few rounds for each model, all asked at the same time."""
    best = dict.fromkeys(names, 0.0)
    for _ in range(ROUNDS):
        rates = await asyncio.gather(*(_rate(fleet, name, tokens) for name in names))
        best = {name: max(best[name], rate) for name, rate in zip(names, rates, strict=True)}
    return [f"{rate:.0f}" for rate in best.values()]


async def _rate(fleet: Fleet, name: str, tokens: int) -> float:
    """Answer tokens a second, from the first to the last."""
    server = fleet.servers[name]
    backend = OpenAIHttpBackend(url=f"{server.url}/v1", model=name, api_key=server.api_key)
    params = {"max_tokens": tokens, "temperature": 0, "ignore_eos": True}
    asked = ChatRequest(id="b", messages=[{"role": "user", "content": PROMPT}], params=params)
    async with aclosing(backend), aclosing(backend.stream(asked)) as chunks:
        times = [time.perf_counter() async for chunk in chunks if chunk.choices]
    return (len(times) - 1) / (times[-1] - times[0])


def _resident_gb(fleet: Fleet, name: str) -> float:
    """Memory of the server's process; Linux only, 0 elsewhere."""
    status = Path(f"/proc/{fleet.servers[name].state.pid}/status")
    if not status.exists():
        return 0.0
    lines = (line.split() for line in status.read_text().splitlines())
    return next((int(line[1]) / 1e6 for line in lines if line[0] == "VmRSS:"), 0.0)


if __name__ == "__main__":
    main()
