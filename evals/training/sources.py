"""Brings outcomes of any origin into rows: reads the requests, and has their texts embedded."""

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from classifiers.read import read
from classifiers.text import DEFAULT, Extraction
from evals.datasets import Prompt
from evals.outcomes import Outcomes, OutcomesError
from evals.training.rows import Rows, TrainingError
from evals.training.table import Line

BATCH = 32

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Rows that were read, not yet embedded.

    Attributes:
        lines: one a request.
        tiers: from the cheapest to the best.
        models: by tier, the model whose answers they are; empty texts where that is not known.
    """

    lines: Sequence[Line]
    tiers: Sequence[str]
    models: Mapping[str, str]


def from_outcomes(outcomes: Outcomes, prompts: Mapping[str, Prompt]) -> Source:
    """What `python -m evals collect` wrote: each prompt that every tier answered.

    Raises:
        OutcomesError: a prompt of the outcomes is not there.
    """
    tiers = list(outcomes.manifest.tiers)
    answers = {tier: outcomes.answers(tier) for tier in tiers}
    lines = []
    for name in answers[tiers[0]]:
        if name not in prompts:
            raise OutcomesError(f"the outcomes answer {name!r}, which is no prompt of the set")
        if not all(name in some for some in answers.values()):
            continue
        prompt = prompts[name]
        lines.append(
            Line(
                request=prompt.request(),
                labels={tier: float(some[name].right) for tier, some in answers.items()},
                group=prompt.group or name,
                kind=prompt.kind,
                split=prompt.split,
            )
        )
    models = {tier: each.model for tier, each in outcomes.manifest.tiers.items()}
    return Source(lines=lines, tiers=tiers, models=models)


def is_outcomes(path: Path) -> bool:
    """Whether a file is one that `python -m evals collect` wrote.

    Raises:
        TrainingError: its compression is damaged.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            return b'"kind":"manifest"' in file.read(200).replace(b" ", b"")
    except (EOFError, zlib.error) as error:
        raise TrainingError(f"{path}: cannot be read: {error}") from None
    except OSError:
        return False


def rows_of(
    source: Source,
    encode: Encode | None,
    done: Callable[[int], None] = lambda _: None,
    extraction: Extraction = DEFAULT,
) -> Rows:
    """The rows, embedded where there is something that embeds.

    Args:
        source: what was read.
        encode: texts to vectors; None: only features.
        done: called with how many texts were embedded since.
        extraction: what of a request is looked at.
    """
    seen = [read(line.request, extraction) for line in source.lines]
    return Rows(
        tiers=list(source.tiers),
        features=[dict(each.features) for each in seen],
        labels=np.array([[line.labels[t] for t in source.tiers] for line in source.lines]),
        groups=np.array([line.group for line in source.lines]),
        embeddings=None if encode is None else _embedded([s.text for s in seen], encode, done),
        kinds=np.array([line.kind for line in source.lines]),
        splits=np.array([line.split for line in source.lines]),
    )


def _embedded(
    texts: Sequence[str], encode: Encode, done: Callable[[int], None]
) -> NDArray[np.float32]:
    """Texts of about the same length together, which a model pads less."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    parts = []
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        parts.append(encode([texts[at] for at in some]))
        done(len(some))
    vectors = np.concatenate(parts)
    placed = np.empty_like(vectors)
    placed[order] = vectors
    return placed
