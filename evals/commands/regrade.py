"""python -m evals regrade: scores stored answers again, after a scorer or reference changed."""

from dataclasses import replace
from pathlib import Path

import click

from evals.datasets import TASKS, Prompt, load
from evals.files import write_whole
from evals.outcomes import Judgement, OutcomesError, Row, prompts_sha256
from evals.outcomes_file import open_alone
from evals.outcomes_lines import line_of, read


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--prompts",
    "prompts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=TASKS,
    help="The prompt set; default the one of six kinds.",
)
def regrade(file: Path, prompts_file: Path) -> None:
    """Score the answers and samples of FILE (.jsonl) again and write it anew."""
    if file.suffix != ".jsonl":
        raise OutcomesError(f"{file}: unpack it first; outcomes are changed as .jsonl only")
    if not file.exists():
        raise OutcomesError(f"{file}: there is no such file")
    with open_alone(file):
        changed, total = _regrade(file, prompts_file)
    for row in changed:
        click.echo(" ".join(map(str, row.key)))
    click.echo(f"{len(changed)} of {total} rows changed")


def _regrade(file: Path, prompts_file: Path) -> tuple[list[Row], int]:
    """Rewrite the file; the rows that changed, and how many there are in all."""
    outcomes = read(file)
    prompts = {prompt.id: prompt for prompt in load(prompts_file)}
    if prompts_sha256(prompts.values()) != outcomes.manifest.prompts_sha256:
        raise OutcomesError(f"{file}: holds answers to other prompts than {prompts_file}")
    rows = [_again(row, prompts[row.prompt]) for row in outcomes.rows.values()]
    before = outcomes.rows.values()
    changed = [new for old, new in zip(before, rows, strict=True) if old != new]
    write_whole(file, "".join(map(line_of, (outcomes.manifest, *rows))))
    return changed, len(rows)


def _again(row: Row, prompt: Prompt) -> Row:
    if isinstance(row, Judgement):
        return row
    return replace(row, right=prompt.right(row.text))
