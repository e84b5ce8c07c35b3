"""Does the cascade pay? 120 prompts of five kinds through the small model, the large one and both.

python examples/mixed.py [--base-url ...] [--json] [--save FILE]

Needs a running service (`make run`) and takes three to five minutes on two cores. Prints accuracy
and cost by kind beside the random mix of the two models that costs the same, at three price ratios,
and says in words what the numbers say. The ladder's threshold was fixed on other prompts
(examples/fit_threshold.py).
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from decimal import Decimal
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from cascade.errors import CascadeError
from cascade.pricing import Rates
from evals.collect import Asker, Outcome
from evals.comparison import compare, pair
from evals.datasets import MIXED, Prompt, load
from evals.files import require_folder, write_whole
from evals.report import HOW_TO_READ, as_json, sentences, table

RATIOS = ("0.1", "0.25", "0.5")
POLICIES = ("always-small", "always-large", "cascade")


@click.command()
@click.option("--base-url", default="http://127.0.0.1:8080/v1", show_default=True)
@click.option("--prompts", type=click.Path(path_type=Path), default=MIXED, help="JSON Lines file")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True)
@click.option("--input-price", type=click.FloatRange(0, min_open=True), default=0.20)
@click.option("--output-price", type=click.FloatRange(0, min_open=True), default=0.40)
@click.option("--json", "as_data", is_flag=True, help="print JSON instead of tables")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="keep every answer")
def main(
    *,
    base_url: str,
    prompts: Path,
    concurrency: int,
    input_price: float,
    output_price: float,
    as_data: bool,
    save: Path | None,
) -> None:
    """Measure always-small, always-large and the ladder on the prompts to show.

    The prices are dollars per million tokens of the large model: examples, like the default
    configuration's. The small model's are 0.1, 0.25 and 0.5 of them.
    """
    rates = Rates(input=Decimal(str(input_price)), output=Decimal(str(output_price)))
    try:
        shown = load(prompts, split="show")
        if save:
            require_folder(save)
        runs = asyncio.run(asked(Asker(base_url, concurrency=concurrency), shown))
        if save:
            write_whole(save, as_text(runs))
        show(runs, rates, as_data=as_data)
    except CascadeError as error:
        raise click.ClickException(error.message) from None


async def asked(asker: Asker, prompts: Sequence[Prompt]) -> dict[str, list[Outcome]]:
    """The outcomes of all policies, one policy after the other."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        waiting = {policy: bars.add_task(policy, total=len(prompts)) for policy in POLICIES}
        async with aclosing(asker):
            return {
                policy: await asker.ask_all(policy, prompts, partial(advance, bars, bar))
                for policy, bar in waiting.items()
            }


def advance(bars: Progress, bar: TaskID, _: Outcome) -> None:
    """One more answer is in."""
    bars.advance(bar)


def show(runs: Mapping[str, list[Outcome]], rates: Rates, *, as_data: bool) -> None:
    """Print the comparison at each ratio."""
    trials, left_out = pair(*(runs[policy] for policy in POLICIES))
    compared = {ratio: compare(trials, ratio=Decimal(ratio), large_rates=rates) for ratio in RATIOS}
    if as_data:
        data = [as_json(rows, Decimal(ratio)) for ratio, rows in compared.items()]
        click.echo(json.dumps({"ratios": data, "left_out": left_out}, indent=2))
        return
    console = Console()
    for ratio, rows in compared.items():
        console.print(table(rows, Decimal(ratio)))
        for sentence in sentences(rows):
            console.print(f"  {sentence}", highlight=False)
        console.print()
    console.print(HOW_TO_READ, highlight=False)
    console.print(on_money(runs), highlight=False)
    for prompt, reason in left_out.items():
        console.print(f"left out: {prompt}: {reason}", highlight=False)


def on_money(runs: Mapping[str, list[Outcome]]) -> str:
    """How the tables price a token, and what the service itself billed."""
    bills = {policy: [one.billed for one in run] for policy, run in runs.items()}
    told = [
        f"{policy} " + ("unknown" if None in bill else f"${sum(filter(None, bill)):f}")
        for policy, bill in bills.items()
    ]
    return (
        "The tables price every prompt token as computed, because what was cached here depends on "
        "the order of the runs. The service billed this run, its caches and prices included: "
        f"{', '.join(told)}."
    )


def as_text(runs: Mapping[str, list[Outcome]]) -> str:
    """Every answer as one JSON line."""
    rows = [
        {
            **{name: value for name, value in asdict(one).items() if name != "prompt"},
            "prompt_id": one.prompt.id,
            "kind": one.prompt.kind,
            "billed": None if one.billed is None else str(one.billed),
        }
        for run in runs.values()
        for one in run
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


if __name__ == "__main__":
    main()
