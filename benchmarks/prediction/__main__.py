"""What the ledger says is warm, beside what real servers report to have read: docs/prediction.md.

    python -m benchmarks.prediction [--embedded] [--vllm URL]... [--json] [--write]

Conversations that grow turn by turn, several behind each system prompt, are sent one request after
the other, in a mixed order, through a whole service. Of each request what the quote said before the
call stands beside what the usage said after it. With --write the tables replace those in the page.
"""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks.pages import put
from benchmarks.prediction.asking import measured
from benchmarks.prediction.conversations import Turn, turns
from benchmarks.prediction.rows import Measured, as_json, table
from benchmarks.prediction.servers import embedded, running_vllm
from cascade.errors import CascadeError
from evals.panel_report import as_markdown, on_screen

PAGE: Final = Path(__file__).parents[2] / "docs" / "prediction.md"
EMBEDDED, VLLM = "embedded", "vllm"
WIDTH: Final = 140


@click.command()
@click.option("--embedded", "embeds", is_flag=True, help="The default's models, launched here.")
@click.option("--vllm", "urls", multiple=True, help="Of a running vLLM, up to /v1; repeatable.")
@click.option("--tier", "tiers", multiple=True, default=("small",), show_default=True)
@click.option("--conversations", default=20, show_default=True, type=click.IntRange(min=1))
@click.option("--turns", "length", default=11, show_default=True, type=click.IntRange(min=1))
@click.option("--temperature", default=0.0, show_default=True, type=click.FloatRange(min=0))
@click.option("--logprobs", is_flag=True, help="Ask for them, as most judges do.")
@click.option("--seed", default=1, show_default=True)
@click.option("--json", "as_lines", is_flag=True, help="Every request, as JSON.")
@click.option("--write", is_flag=True, help="Put the tables into docs/prediction.md.")
def main(
    *,
    embeds: bool,
    urls: Sequence[str],
    tiers: Sequence[str],
    conversations: int,
    length: int,
    temperature: float,
    logprobs: bool,
    seed: int,
    as_lines: bool,
    write: bool,
) -> None:
    """Ask, and print how far what was predicted is from what was reported."""
    mark = f"It is {datetime.now(UTC):%d %B %Y, %H:%M:%S.%f}."
    sent = turns(conversations=conversations, length=length, seed=seed, mark=mark)
    found: dict[str, list[Measured]] = {}
    try:
        if embeds or not urls:
            found[EMBEDDED] = asyncio.run(_embedded(tiers, sent, temperature, logprobs=logprobs))
        if urls:
            found[VLLM] = asyncio.run(_vllm(urls, sent, temperature, logprobs=logprobs))
        if write:
            for kind, each in found.items():
                begin = f"<!-- python -m benchmarks.prediction --{kind} --write -->"
                put(PAGE, begin, f"<!-- end of {kind} -->", f"\n{as_markdown([table(each)])}\n")
    except CascadeError as error:
        raise click.ClickException(str(error)) from error
    if as_lines:
        click.echo(json.dumps({k: [as_json(one) for one in each] for k, each in found.items()}))
        return
    on_screen(Console(width=WIDTH), [table(each) for each in found.values()])


async def _embedded(
    tiers: Sequence[str], sent: Sequence[Turn], temperature: float, *, logprobs: bool
) -> list[Measured]:
    found = []
    for tier in tiers:
        async with embedded(tier) as snapshot:
            found.append(await measured(snapshot, sent, temperature, logprobs=logprobs))
    return found


async def _vllm(
    urls: Sequence[str], sent: Sequence[Turn], temperature: float, *, logprobs: bool
) -> list[Measured]:
    found = []
    for url in urls:
        snapshot = await running_vllm(url)
        found.append(await measured(snapshot, sent, temperature, logprobs=logprobs))
    return found


if __name__ == "__main__":
    main()
