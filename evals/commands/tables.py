"""The options by which a command is given an outcome table, the same for all that take one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from evals.files import require_folder
from evals.tables import OutcomeTable, SplitRule, TableError, columns, load
from evals.tables.prices import stated
from evals.tables.splits import SPLITS
from evals.training.sources import is_outcomes

_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.argument("table", type=click.Path(path_type=Path, dir_okay=False)),
    click.option(
        "--column",
        "pairs",
        multiple=True,
        metavar="NAME=COLUMN",
        help="Which column is what: id, prompt, group, kind, session, split, cost.TIER, "
        "judged.TIER, judge_cost.TIER, predicted.TIER, input.TIER, cache_read.TIER, output.TIER, "
        "or tier, quality and so on where each row is an answer; any other name is a tier and its "
        "column the quality, the cheapest first. May be given several times.",
    ),
    click.option(
        "--price",
        "prices",
        multiple=True,
        metavar="TIER=DOLLARS",
        help="Dollars of an answer where the table says none; or INPUT/OUTPUT or "
        "INPUT/CACHED/OUTPUT, dollars per million tokens. May be given several times.",
    ),
    click.option("--fit-share", type=float, default=0.5, show_default=True, help="Rows to fit on."),
    click.option(
        "--choose-share",
        type=float,
        default=0.25,
        show_default=True,
        help="Rows to choose on; the rest is the test. Both are of no use where the table says.",
    ),
    click.option("--split-seed", type=int, default=0, show_default=True, help="Other parts."),
)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the argument `table` and the options that `loaded` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def loaded(  # noqa: PLR0917 - click passes options by name
    table: Path,
    pairs: Sequence[str],
    prices: Sequence[str],
    fit_share: float,
    choose_share: float,
    split_seed: int,
) -> OutcomeTable:
    """The table that those options stand for.

    Raises:
        TableError: it cannot be used; says which file, row and column.
    """
    if is_outcomes(table):
        raise TableError(
            f"{table}: holds answers and no table; make one with `cascade eval collect PROMPTS "
            f"--answers {table} --out TABLE`"
        )
    rule = SplitRule(fit=fit_share, choose=choose_share, seed=split_seed)
    return load(table, columns(pairs), split=rule, prices=stated(prices))


def require_parquet(out: Path) -> None:
    """Say before any work that a table cannot be written there.

    Raises:
        TableError: the file's name ends in something else.
        ResultFileError: its folder is missing.
    """
    if out.suffix != ".parquet":
        raise TableError(f"{out}: the table is written as a file that ends in .parquet")
    require_folder(out)


def show(console: Console, found: OutcomeTable, out: Path) -> None:
    """Print what a table holds, and where it was written."""
    shown = Table(title=f"{len(found)} prompts", title_justify="left")
    for name in ("tier", "scored", "quality", "dollars an answer", "judged", "predicted"):
        left = name == "tier"
        shown.add_column(name, justify="left" if left else "right", overflow="fold")
    for at, tier in enumerate(found.tiers):
        quality, cost = found.quality[:, at], found.cost[:, at]
        shown.add_row(
            tier,
            str(int((~np.isnan(quality)).sum())),
            _mean(quality, ".3f"),
            _mean(cost, ".3g"),
            str(int((~np.isnan(found.judged[:, at])).sum())),
            str(int((~np.isnan(found.predicted[:, at])).sum())),
        )
    console.print(shown)
    parts = ", ".join(f"{int((found.splits == part).sum())} to {part}" for part in SPLITS)
    console.print(f"{parts}; {len(set(found.groups))} groups; written to {out}", highlight=False)
    if np.isnan(found.cost).all(axis=0).any():
        console.print(
            "Some tier's answers have no cost: name its column as --column cost.TIER=COLUMN, or "
            "give --price TIER=DOLLARS.",
            highlight=False,
        )


def _mean(values: np.ndarray[Any, Any], form: str) -> str:
    known = values[~np.isnan(values)]
    return format(float(known.mean()), form) if len(known) else "unknown"
