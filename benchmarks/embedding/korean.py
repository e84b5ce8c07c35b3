"""Whether an embedder finds a Korean request again by its paraphrase, and by its English."""

from pathlib import Path

import numpy as np

from classifiers.embedding import EmbeddingModel

PAIRS = Path(__file__).with_name("korean.tsv")
"""A request, the same in other words, the same in English; one line each, our own."""


def found_again(model: EmbeddingModel) -> tuple[str, str]:
    """Of how many requests the nearest among all paraphrases, and English ones, is their own."""
    lines = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    korean, paraphrase, english = (model.encode(list(texts)) for texts in zip(*lines, strict=True))
    own = np.arange(len(lines))
    counts = [
        int(np.sum(np.argmax(korean @ others.T, axis=1) == own)) for others in (paraphrase, english)
    ]
    return f"{counts[0]} of {len(lines)}", f"{counts[1]} of {len(lines)}"
