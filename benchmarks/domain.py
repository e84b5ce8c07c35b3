"""How often requests of other domains are told from the training data: docs/classifier.md.

    python -m benchmarks.domain --data FOLDER

A model is fitted on some of the MMLU rows; then its check looks at MMLU rows that it has not seen,
and at GSM8K, at the tables of nine models and at our own prompts.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from classifiers.domain import Domain
from classifiers.embedding import OnnxModel
from evals.datasets import TASKS, load
from evals.training.fit import Recipe, fit
from evals.training.fitters import sample
from evals.training.sources import Source, rows_of
from evals.training.table import Columns, Line, read_table

TABLES = {
    "GSM8K": "routellm_gsm8k.jsonl.gz",
    "the table of nine models": "llmrouter_9models.jsonl.gz",
}
FITTED = 2_000
LOOKED_AT = 400


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=lambda: os.environ.get("CASCADE_DATA"),
    required=True,
    help="Folder of the outcome tables; default $CASCADE_DATA.",
)
def main(data: Path) -> None:
    """Print the share of requests that the check flags, by where they come from."""
    console, model = Console(), OnnxModel()
    mmlu = read_table(data / "routellm_mmlu.jsonl.gz", Columns())
    drawn = [mmlu[at] for at in sample(len(mmlu), FITTED + LOOKED_AT, 0)]
    order = np.random.default_rng(0).permutation(len(drawn))
    known, fresh = ([drawn[at] for at in some] for some in np.split(order, [FITTED]))
    domain = fit(rows_of(_source(known), model.encode), Recipe(head="linear")).domain
    if domain is None:
        raise AssertionError("the recipe checks the domain")
    console.print(f"fitted on {FITTED} MMLU rows; flagged, by meaning, by shape, by either:")
    others = {name: _some(read_table(data / file, Columns())) for name, file in TABLES.items()}
    prompts = [Line(request=p.request(), labels={}, group=p.id) for p in load(TASKS)]
    for name, lines in {"MMLU": fresh, **others, "our own prompts": _some(prompts)}.items():
        shares = ", ".join(f"{share:.3f}" for share in _flagged(domain, lines, model))
        console.print(f"  {name} (n = {len(lines)}): {shares}", highlight=False)


def _flagged(domain: Domain, lines: Sequence[Line], model: OnnxModel) -> list[float]:
    rows = rows_of(_source(lines), model.encode)
    both = domain(rows.embeddings, rows.features)
    shape = domain(None, rows.features)
    meaning = np.zeros(len(rows), dtype=bool)
    if domain.meaning is not None and rows.embeddings is not None:
        meaning = domain.meaning.distance(rows.embeddings) > domain.meaning.limit
    return [float(each.mean()) for each in (meaning, shape, both)]


def _some(lines: Sequence[Line]) -> list[Line]:
    return [lines[at] for at in sample(len(lines), LOOKED_AT, 0)]


def _source(lines: Sequence[Line]) -> Source:
    return Source(lines=lines, tiers=list(lines[0].labels), models={})


if __name__ == "__main__":
    main()
