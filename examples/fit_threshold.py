"""Fits the small model's judge on the 120 prompts that examples/mixed.py does not show.

python examples/fit_threshold.py FILE [--base-url ...]

Asks a running service's two models, fits the map from log probability to P(right), picks the
ladder's threshold and writes the map to FILE. Put both into cascade.yaml: the file as the judge's
`calibration`, the threshold as the step's `accept_at`. The service must serve the tiers by name.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.calibration import MonotoneMap
from cascade.errors import CascadeError
from cascade.pricing import PriceCard
from evals.comparison import EVERYTHING, LARGE_RATES, scaled
from evals.datasets import Prompt, load
from evals.files import require_folder, write_whole
from evals.metrics import mean
from evals.tune import Candidate, FitRow, Side, artifact, choose, curve, fit, measure, ranking
from judges.logprob import STATISTICS, LogprobJudge

FEATURES = (*STATISTICS, "tokens")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--base-url", default="http://127.0.0.1:8080/v1", show_default=True)
@click.option("--small", default="small", show_default=True, help="name of the small model")
@click.option("--large", default="large", show_default=True, help="name of the large model")
@click.option("--statistic", type=click.Choice(STATISTICS), default="min", show_default=True)
@click.option(
    "--ratio",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
)
def main(
    *, file: Path, base_url: str, small: str, large: str, statistic: str, ratio: float
) -> None:
    """Fit the judge's map and the ladder's threshold, write the map to FILE."""
    console = Console()
    try:
        require_folder(file)
        prompts = load(split="fit")
        rows = asyncio.run(measured(prompts, (base_url, small, large), statistic, ratio))
        fitted = fit(rows)
        candidates = curve(rows, fitted)
        chosen = choose(candidates)
        judge = {"type": "logprob", "statistic": statistic}
        about = {"model": small, "price_ratio": ratio}
        write_whole(file, artifact(rows, fitted, chosen, prompts, judge=judge, about=about))
    except CascadeError as error:
        raise click.ClickException(error.message) from None
    console.print(by_kind(rows), map_table(fitted), curve_table(candidates, chosen))
    console.print(f"Wrote {file}. To use it, in cascade.yaml:", soft_wrap=True)
    console.print(
        f"  a judge:    {{type: logprob, statistic: {statistic}, calibration: {file}}}\n"
        f"  its ladder: {{tier: {small}, judge: ..., accept_at: {chosen.accept_at:g}}}",
        soft_wrap=True,
        highlight=False,
    )


async def measured(
    prompts: Sequence[Prompt], where: tuple[str, str, str], statistic: str, ratio: float
) -> list[FitRow]:
    """Ask both models, showing progress."""
    url, small, large = where
    backends = [OpenAIHttpBackend(url=url, model=name) for name in (small, large)]
    rates = (scaled(LARGE_RATES, Decimal(str(ratio))), LARGE_RATES)
    first, second = (
        Side(backend=backend, card=PriceCard(rates=each))
        for backend, each in zip(backends, rates, strict=True)
    )
    async with aclosing(backends[0]), aclosing(backends[1]):
        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("asking both models", total=len(prompts))
            judge = LogprobJudge(statistic=statistic)
            return await measure(prompts, (first, second), judge, lambda: bar.advance(task))


def by_kind(rows: Sequence[FitRow]) -> Table:
    """How often each model is right, and how well each feature tells the small one's errors."""
    shown = Table(title="right answers in %, and AUROC of the small answer's features")
    for name in ("kind", "small", "large", *FEATURES):
        shown.add_column(name, justify="left" if name == "kind" else "right")
    for kind in (EVERYTHING, *dict.fromkeys(row.kind for row in rows)):
        group = [row for row in rows if kind in (EVERYTHING, row.kind)]
        told = [ranking(group, feature) for feature in FEATURES]
        shown.add_row(
            f"{kind} ({len(group)})",
            f"{mean([row.small_right for row in group]) * 100:.0f}",
            f"{mean([row.large_right for row in group]) * 100:.0f}",
            *("-" if value is None else f"{value:.2f}" for value in told),
        )
    return shown


def map_table(fitted: MonotoneMap) -> Table:
    """The knots of the map."""
    shown = Table("raw score", "P(right)", title="the fitted map, linear between its knots")
    for x, y in zip(fitted.x, fitted.y, strict=True):
        shown.add_row(f"{x:.3f}", f"{y:.3f}")
    return shown


def curve_table(candidates: Sequence[Candidate], chosen: Candidate) -> Table:
    """What each threshold would do on these rows."""
    shown = Table(title="the ladder by threshold, beside the random mix of equal cost")
    for name in ("accept_at", "up", "accuracy", "mix", "lead"):
        shown.add_column(name, justify="right")
    for each in candidates:
        shown.add_row(
            f"{each.accept_at:.2f}",
            f"{each.escalated:.0%}",
            f"{each.accuracy:.3f}",
            f"{each.mix_accuracy:.3f}",
            f"{each.lead:+.3f}",
            style="bold" if each is chosen else None,
        )
    return shown


if __name__ == "__main__":
    main()
