"""The three tables of outcomes as training rows, their embeddings kept on disk between runs."""

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from cascade.errors import CascadeError
from cascade.types import ChatRequest
from classifiers.embedding import OnnxModel
from classifiers.read import read
from evals.files import ResultFileError
from evals.text_judging import load_pairs
from evals.training.rows import Rows

MMLU: Final = "routellm_mmlu.jsonl.gz"
GSM8K: Final = "routellm_gsm8k.jsonl.gz"
NINE: Final = "llmrouter_9models.jsonl.gz"
PAIR: Final = ("weak", "strong")
_AT_ONCE = 64
_SIZE = re.compile(r"(\d+(?:\.\d+)?)b(?![a-z])")


class DataError(CascadeError):
    """A table is missing or no such table; says which and what to do."""

    code = "no_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is measured on.

    Attributes:
        mmlu: Mixtral-8x7B and GPT-4 on multiple choice; kinds are the subjects.
        gsm8k: the same models on sums in words, as their answers were graded.
        regraded: the same answers graded by value.
        nine: nine models on fourteen tasks, their scores in [0, 1]; kinds are the tasks.
    """

    mmlu: Rows
    gsm8k: Rows
    regraded: Rows
    nine: Rows


def folder(given: Path | None) -> Path:
    """Where the tables are.

    Raises:
        DataError: that is not known, or a table is not there.
    """
    named = given or (Path(os.environ["CASCADE_DATA"]) if os.environ.get("CASCADE_DATA") else None)
    if named is None:
        raise DataError("no data: name the folder of the tables by --data or CASCADE_DATA")
    for name in (MMLU, GSM8K, NINE):
        if not (named / name).is_file():
            raise DataError(f"{named}: there is no {name}; --data names the folder of the tables")
    return named


def load(data: Path, cache: Path) -> Tables:
    """Read the tables, and embed what is not in the cache.

    Raises:
        DataError: a table is not what it should be.
        ResultFileError: the cache cannot be written.
    """
    mmlu, nine = _lines(data / MMLU), _lines(data / NINE)
    pairs = load_pairs(data / GSM8K)
    names = sorted(nine[0]["scores"], key=lambda name: (size(name), name))
    sums = _rows([pair.prompt for pair in pairs], [[p.weak, p.strong] for p in pairs], PAIR, cache)
    again = [pair.regraded() for pair in pairs]
    return Tables(
        mmlu=_rows(
            [row["prompt"] for row in mmlu],
            [[row[tier] for tier in PAIR] for row in mmlu],
            PAIR,
            cache,
            [row["subject"] for row in mmlu],
        ),
        gsm8k=sums,
        regraded=replace(
            sums, labels=np.array([[p.weak, p.strong] for p in again], dtype=np.float64)
        ),
        nine=_rows(
            [row["prompt"] for row in nine],
            [[row["scores"][name] for name in names] for row in nine],
            names,
            cache,
            [row["task"] for row in nine],
        ),
    )


def size(model: str) -> float:
    """Parameters of a model in billions, from its name.

    Raises:
        DataError: the name does not tell.
    """
    found = _SIZE.findall(model.lower())
    if not found:
        raise DataError(f"model {model}: its name does not tell its size, as in name-7b")
    return float(found[-1])


def _lines(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = gzip.decompress(path.read_bytes()).decode()
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def _rows(
    prompts: Sequence[str],
    labels: Sequence[Sequence[float]],
    tiers: Sequence[str],
    cache: Path,
    kinds: Sequence[str] | None = None,
) -> Rows:
    asked = [
        read(ChatRequest(id="", messages=[{"role": "user", "content": prompt}]))
        for prompt in prompts
    ]
    return Rows(
        tiers=tiers,
        features=[each.features for each in asked],
        labels=np.array(labels, dtype=np.float64),
        groups=np.array([hashlib.md5(p.encode()).hexdigest() for p in prompts]),  # noqa: S324
        embeddings=_embedded([each.text for each in asked], cache),
        kinds=None if kinds is None else np.array(kinds),
    )


def _embedded(texts: Sequence[str], cache: Path) -> NDArray[np.float32]:
    model = OnnxModel()
    key = hashlib.sha256(json.dumps([model.model, *texts]).encode()).hexdigest()[:16]
    path = cache / f"{key}.npy"
    if path.is_file():
        found: NDArray[np.float32] = np.load(path)
        return found
    starts = track(range(0, len(texts), _AT_ONCE), f"Embedding {len(texts):,} prompts")
    vectors = np.vstack([model.encode(texts[at : at + _AT_ONCE]) for at in starts])
    beside = path.with_name(f".{key}.npy")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        np.save(beside, vectors)
        beside.replace(path)
    except OSError as error:
        raise ResultFileError(f"{path}: cannot be written: {error.strerror or error}") from None
    return vectors
