"""python -m evals show: what a file of outcomes holds, in one table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from evals.datasets import TASKS, load
from evals.outcomes import Answer, Judgement, Outcomes, OutcomesError, Sample
from evals.outcomes_lines import read


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--prompts",
    "prompts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=TASKS,
    help="The prompt set; default the one of six kinds.",
)
def show(file: Path, prompts_file: Path) -> None:
    """Print by kind of task how often each tier in FILE (.jsonl or .jsonl.gz) is right."""
    outcomes = read(file)
    kinds = {prompt.id: prompt.kind for prompt in load(prompts_file)}
    if strangers := {row.prompt for row in outcomes.rows.values()} - kinds.keys():
        raise OutcomesError(f"{file}: {min(strangers)!r} is no prompt of {prompts_file}")
    console = Console()
    console.print(_table(outcomes, kinds))
    console.print(_summary(outcomes), highlight=False)


def _table(outcomes: Outcomes, kinds: Mapping[str, str]) -> Table:
    tiers = list(outcomes.manifest.tiers)
    answers = {tier: outcomes.answers(tier) for tier in tiers}
    both = [name for name in kinds if all(name in answers[tier] for tier in tiers)]
    table = Table()
    table.add_column("kind")
    table.add_column("prompts", justify="right")
    for tier in tiers:
        table.add_column(f"{tier}: right", justify="right")
        table.add_column("tokens", justify="right")
        table.add_column("median s", justify="right")
    for kind in ("all", *dict.fromkeys(kinds.values())):
        names = [name for name in both if kind in ("all", kinds[name])]
        if names:
            cells = [cell for tier in tiers for cell in _cells([answers[tier][n] for n in names])]
            table.add_row(kind, str(len(names)), *cells)
    return table


def _cells(answers: Sequence[Answer]) -> list[str]:
    right = sum(answer.right for answer in answers) / len(answers)
    tokens = [answer.usage.output for answer in answers if answer.usage.output is not None]
    return [
        f"{right:.1%}",
        f"{sum(tokens) / len(tokens):.0f}" if tokens else "?",
        f"{median(answer.seconds for answer in answers):.1f}",
    ]


def _summary(outcomes: Outcomes) -> str:
    manifest, rows = outcomes.manifest, outcomes.rows.values()
    counts = ", ".join(
        f"{sum(isinstance(row, kind) for row in rows)} {name}"
        for kind, name in ((Answer, "answers"), (Sample, "samples"), (Judgement, "verdicts"))
    )
    models = ", ".join(f"{tier}: {identity}" for tier, identity in manifest.tiers.items())
    return f"{counts}; {models}\n{manifest.machine}; begun {manifest.begun}"
