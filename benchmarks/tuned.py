"""How often a tuned setting misses its goal, with and without a bound, where the truth is known.

    python -m benchmarks.tuned [--tables N] [--write]

Outcomes of two tiers are made up: prompts are of different difficulty, predictions and scores are
right as probabilities. On each table the cascade is tuned to 95 % of the large model's quality;
what the setting is really worth is read off a million other prompts. With --write the table
replaces the one in docs/eval-tune.md.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.pages import put
from evals.choice.goals import Goal
from evals.choice.tuned import Tuned, tune
from evals.frontier.policies import replayed
from evals.tables import OutcomeTable

PAGE: Final = Path(__file__).parents[1] / "docs" / "eval-tune.md"
BEGIN: Final = "<!-- python -m benchmarks.tuned --write -->"
END: Final = "<!-- end of tuned -->"
SIZES: Final = (500, 1_000, 4_000)
PRICES: Final = (0.0001, 0.001)
POPULATION: Final = 1_000_000
GOAL: Final = Goal(kind="quality", value=0.95, delta=0.1)
POLICY: Final = "cascade"
CANDIDATES: Final = (1, 8)
HEAD: Final = (
    "rows",
    "settings tried",
    "misses without a bound",
    "dollars",
    "certified",
    "certified and wrong",
    "dollars",
)

Floats = NDArray[np.float64]


class Tally(NamedTuple):
    """What became of the tables of one size; shares of all of them, and mean dollars a request.

    Attributes:
        missed: the setting that just meets the goal on the choose rows misses it in truth.
        plain: what that setting costs.
        certified: a claim was made.
        wrong: a claim was made that is not true.
        cost: of the certified settings.
    """

    missed: float
    plain: float
    certified: float
    wrong: float
    cost: float


def outcomes(count: int, seed: int, *, alike: int = 1) -> OutcomeTable:
    """Two tiers' made-up outcomes; two fifths of the groups to choose on, two to test on.

    Args:
        count: rows.
        seed: of everything.
        alike: rows of a group, which are equally hard.
    """
    rng = np.random.default_rng(seed)
    hard = np.repeat(rng.normal(size=-(-count // alike)), alike)[:count]
    right = np.stack([_chance(1.2 - hard), _chance(2.2 - 0.8 * hard)], axis=1)
    quality = (rng.random((count, 2)) < right).astype(np.float64)
    heard = rng.normal(size=count) + 0.9 * (2.0 * quality[:, 0] - 1.0)
    score = _chance(np.log(right[:, 0] / (1.0 - right[:, 0])) + 1.8 * heard)
    groups = np.arange(count) // alike
    none = np.full(count, "")
    return OutcomeTable(
        tiers=("small", "large"),
        ids=np.array([f"p-{at}" for at in range(count)]),
        groups=np.array([f"g-{at}" for at in groups]),
        kinds=none,
        sessions=none,
        splits=np.array(["fit", "choose", "choose", "test", "test"])[groups % 5],
        quality=quality,
        cost=np.tile(PRICES, (count, 1)),
        judged=np.stack([score, np.full(count, np.nan)], axis=1),
        judge_cost=np.zeros((count, 2)),
        predicted=right,
        lengths=np.full(count, 20.0),
        prompts=[f"What is {at} + {at}?" for at in range(count)],
        source="made.jsonl",
    )


def truth(population: OutcomeTable) -> Callable[[float], float]:
    """The share of the large model's quality that the cascade has at a setting."""
    sweep = replayed(population)[POLICY].sweep(population)
    shares = sweep.curve().quality / population.quality[:, 1].mean()
    return lambda knob: float(shares[sweep.place(knob)])


def tally(found: Sequence[Tuned], true: Callable[[float], float]) -> Tally:
    """What became of tuned tables."""
    just = [each.just for each in found if each.just is not None]
    made = [each.chosen for each in found if each.claim.met]
    count = len(found)
    return Tally(
        missed=sum(true(each.knob) < GOAL.value for each in just) / count,
        plain=float(np.mean([each.cost for each in just])),
        certified=len(made) / count,
        wrong=sum(true(each.knob) < GOAL.value for each in made) / count,
        cost=float(np.mean([each.cost for each in made])) if made else float("nan"),
    )


def _chance(log_odds: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-log_odds))


def _row(size: int, candidates: int, found: Tally) -> str:
    return (
        f"| {size:,} | {candidates} | {found.missed:.0%} | {found.plain:.6f} "
        f"| {found.certified:.0%} | {found.wrong:.1%} | {found.cost:.6f} |"
    )


@click.command()
@click.option("--tables", default=400, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help="Put the table into docs/eval-tune.md.")
def main(*, tables: int, write: bool) -> None:
    """Tune on made-up tables and print how often the goal is missed."""
    true = truth(outcomes(POPULATION, 10**6))
    lines = [
        f"| {' | '.join(HEAD)} |",
        "|---" * len(HEAD) + "|",
    ]
    for size in SIZES:
        made = [outcomes(size, seed) for seed in range(tables)]
        for count in CANDIDATES:
            found = [
                tune(table, POLICY, GOAL, candidates=count)
                for table in track(made, f"{size:,} rows, {count} settings")
            ]
            lines.append(_row(size, count, tally(found, true)))
    text = "\n".join(lines)
    click.echo(text)
    if write:
        put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
