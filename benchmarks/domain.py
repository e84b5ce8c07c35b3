"""How often requests of other domains are told from the training data: docs/classifier.md.

    python -m benchmarks.domain --data FOLDER [--write]

Two models are looked at: the one that ships, and one that is fitted on some of the MMLU rows. Their
checks look at rows of their own kind that they have not seen, and at those of other tables. With
--write the tables replace those in the page.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console

import classifiers
from benchmarks.pages import put
from cascade.errors import CascadeError
from classifiers.artifact import load as load_artifact
from classifiers.domain import Domain
from classifiers.embedding import OnnxModel
from evals.datasets import TASKS
from evals.datasets import load as load_prompts
from evals.outcomes_lines import read as read_outcomes
from evals.tables.columns import Columns
from evals.training.fit import Recipe, fit
from evals.training.fitters import sample
from evals.training.rows import Rows
from evals.training.sources import Source, from_outcomes, rows_of
from evals.training.table import Line, read_table
from evals.training.train import KEPT_OUT

PAGE: Final = Path(__file__).parents[1] / "docs" / "classifier.md"
BEGIN: Final = "<!-- python -m benchmarks.domain --write -->"
END: Final = "<!-- end of domain -->"
SHIPPED: Final = Path(classifiers.__file__).parent / "artifacts" / "qwen2.5-coder.json"
OUTCOMES: Final = Path(__file__).parents[1] / "evals" / "outcomes" / "embedded.jsonl.gz"
TABLES: Final = {
    "MMLU": "routellm_mmlu.jsonl.gz",
    "GSM8K": "routellm_gsm8k.jsonl.gz",
    "the table of nine models": "llmrouter_9models.jsonl.gz",
}
FITTED: Final = 2_000
LOOKED_AT: Final = 400
INSIDE: Final = (0.98, 0.95, 0.9)
"""What `--inside` could be; the default is among them."""


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=lambda: os.environ.get("CASCADE_DATA"),
    required=True,
    help="Folder of the outcome tables; default $CASCADE_DATA.",
)
@click.option("--write", is_flag=True, help="Put the tables into docs/classifier.md.")
def main(data: Path, *, write: bool) -> None:
    """Print the share of requests that the check flags, by where they come from."""
    try:
        text = "\n".join(_lines(data, OnnxModel()))
        Console().print(text, markup=False, highlight=False, soft_wrap=True)
        if write:
            put(PAGE, BEGIN, END, text)
    except CascadeError as error:
        raise click.ClickException(str(error)) from None


def _lines(data: Path, model: OnnxModel) -> Iterator[str]:
    tables = {name: _read(data / file, model) for name, file in TABLES.items()}
    others = {name: rows.take(np.arange(LOOKED_AT)) for name, rows in tables.items()}
    ours = _ours(model)
    splits = np.zeros(len(ours), "U1") if ours.splits is None else ours.splits
    known, tested = ours.take(~np.isin(splits, KEPT_OUT)), ours.take(splits == "test")
    seen = tables["MMLU"].take(np.arange(LOOKED_AT, LOOKED_AT + FITTED))

    domain = load_artifact(SHIPPED)[1].domain
    if domain is None:
        raise AssertionError("what ships checks the domain")
    mixed = {"its own test rows": tested, **others}
    yield from _table("the artifact that ships, looking at", domain, mixed)
    fitted = _domain(seen, Recipe().inside)
    foreign = {name: rows for name, rows in others.items() if name != "MMLU"}
    unseen = {"MMLU, not among those rows": others["MMLU"], **foreign, "our own prompts": tested}
    yield from _table(f"fitted on {FITTED:,} MMLU rows, looking at", fitted, unseen)
    yield from _by_limit({"what ships": (known, mixed), "fitted on MMLU": (seen, unseen)})


def _table(title: str, domain: Domain, looked_at: Mapping[str, Rows]) -> Iterator[str]:
    yield f"| {title} | n | by embedding | by shape | by either |"
    yield "|---|---|---|---|---|"
    for name, rows in looked_at.items():
        shares = " | ".join(f"{share:.3f}" for share in _flagged(domain, rows))
        yield f"| {name} | {len(rows)} | {shares} |"
    yield ""


def _by_limit(fitted: Mapping[str, tuple[Rows, Mapping[str, Rows]]]) -> Iterator[str]:
    yield f"| by either, with `--inside` | {' | '.join(map(str, INSIDE))} |"
    yield "|---" * (len(INSIDE) + 1) + "|"
    for model, (known, looked_at) in fitted.items():
        domains = [_domain(known, inside) for inside in INSIDE]
        for name, rows in looked_at.items():
            shares = " | ".join(f"{_flagged(domain, rows)[-1]:.3f}" for domain in domains)
            yield f"| {model}: {name} | {shares} |"


def _domain(rows: Rows, inside: float) -> Domain:
    found = fit(rows, Recipe(head="linear", inside=inside)).domain
    if found is None:
        raise AssertionError("the recipe checks the domain")
    return found


def _flagged(domain: Domain, rows: Rows) -> list[float]:
    both = domain(rows.embeddings, rows.features)
    shape = domain(None, rows.features)
    meaning = np.zeros(len(rows), dtype=bool)
    if domain.meaning is not None and rows.embeddings is not None:
        meaning = domain.meaning.distance(rows.embeddings) > domain.meaning.limit
    return [float(each.mean()) for each in (meaning, shape, both)]


def _ours(model: OnnxModel) -> Rows:
    prompts = {prompt.id: prompt for prompt in load_prompts(TASKS)}
    return rows_of(from_outcomes(read_outcomes(OUTCOMES), prompts), model.encode)


def _read(path: Path, model: OnnxModel) -> Rows:
    """Some rows of a table in an order of chance; of MMLU as many more as a model is fitted on."""
    lines = read_table(path, Columns())
    count = LOOKED_AT + (FITTED if path.name == TABLES["MMLU"] else 0)
    drawn = [lines[at] for at in sample(len(lines), count, 0)]
    mixed = [drawn[at] for at in np.random.default_rng(0).permutation(len(drawn))]
    return rows_of(_source(mixed), model.encode)


def _source(lines: Sequence[Line]) -> Source:
    return Source(lines=lines, tiers=list(lines[0].labels), models={})


if __name__ == "__main__":
    main()
