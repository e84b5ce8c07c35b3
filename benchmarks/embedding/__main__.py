"""How long an estimate takes with each embedder, alone and under load, and what its vectors say.

    python -m benchmarks.embedding [--static FOLDER] [--write]

With --write the tables replace those in docs/embedding.md. It keeps to one core; run it where
nothing else runs, since only the CPU times bear company. `python -m evals static FOLDER` makes the
folder; without one the static embedder is left out.
"""

import asyncio
import gc
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.embedding.korean import found_again
from benchmarks.pages import put
from cascade.errors import CascadeError
from cascade.protocols import DifficultyEstimator
from cascade.types import ChatRequest
from classifiers.embedder import BatchedEmbedder
from classifiers.embedding import (
    EmbeddingModel,
    OnnxModel,
    SentenceTransformersModel,
    StaticModel,
)
from classifiers.heads import Linear
from classifiers.heuristic import HeuristicEstimator
from classifiers.text import asked
from evals.datasets import TASKS, load

PAGE: Final = Path(__file__).parents[2] / "docs" / "embedding.md"
BEGIN: Final = "<!-- python -m benchmarks.embedding --write -->"
END: Final = "<!-- end of embedding -->"
TIERS: Final = {"small": [0.9, 0.3], "large": [0.97, 0.6]}
CONCURRENT: Final = 64
LONG: Final = 1_500
"""Characters of the longer texts: a model of 256 tokens is full."""


class LinearEstimator:
    """An embedding and one dot product: the least that an estimate from vectors takes."""

    def __init__(self, model: EmbeddingModel) -> None:
        rng = np.random.default_rng(0)
        weights = rng.normal(size=(model.dimensions, len(TIERS)))
        self._head = Linear(weights=weights, intercepts=np.zeros(len(TIERS)), log_odds=True)
        self._embedder = BatchedEmbedder(model, cache_mib=0)

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[object]:
        """One row of probabilities a request."""
        texts = [asked(request.messages).text for request in requests]
        return list(self._head((await self._embedder.embed(texts)).astype(float)))


@click.command()
@click.option("--static", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--write", is_flag=True, help="Put the tables into the page.")
@click.option("--rounds", default=500, show_default=True, help="Requests of each measurement.")
def main(static: Path | None, rounds: int, *, write: bool) -> None:
    """Measure, print tables, and put them into the page if that is wanted."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    models: dict[str, EmbeddingModel] = {"MiniLM, 8 bits (`onnx`)": OnnxModel()}
    if static is not None:
        models["static, of MiniLM (`static`)"] = StaticModel(path=str(static.absolute()))
    models["MiniLM as published (`sentence_transformers`)"] = SentenceTransformersModel()
    half = SentenceTransformersModel(dtype="bfloat16")
    models["the same in bfloat16"] = half
    lines = [*timings(models, rounds), "", *likeness(models)]
    text = "\n".join(lines)
    Console().print(text, markup=False, highlight=False, soft_wrap=True)
    if write:
        try:
            put(PAGE, BEGIN, END, text)
        except CascadeError as error:
            raise click.ClickException(str(error)) from None


def timings(models: dict[str, EmbeddingModel], rounds: int) -> Iterator[str]:
    """Milliseconds an estimate takes."""
    short = [prompt.request() for prompt in load(TASKS)][:rounds]
    long = [_padded(request) for request in short[: rounds // 4]]
    yield (
        "| estimate, ms | median | p99 | of it CPU | long text, median | p99 | CPU "
        "| of 64 at once, median | p99 | a second |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    estimators: dict[str, DifficultyEstimator] = {
        f"{name} + linear head": LinearEstimator(model)  # type: ignore[misc]
        for name, model in models.items()
    }
    estimators["heuristic"] = HeuristicEstimator(tiers=TIERS)
    for name, estimator in track(estimators.items(), description="timing"):
        alone = [asyncio.run(_alone(estimator, requests)) for requests in (short, long)]
        cells = [cell for seconds, cpu in alone for cell in (*_told(seconds), f"{cpu * 1e3:.2f}")]
        loaded, rate = asyncio.run(_together(estimator, short))
        cells += [*_told(loaded), f"{rate:,.0f}"]
        yield f"| {name} | {' | '.join(cells)} |"


def likeness(models: dict[str, EmbeddingModel]) -> Iterator[str]:
    """How near the vectors are to those of the model as published, and what Korean is to them."""
    texts = [asked(prompt.messages).text for prompt in load(TASKS)]
    original = models["MiniLM as published (`sentence_transformers`)"].encode(texts)
    yield (
        "| embedder | cosine to MiniLM as published, mean | least | Korean by its paraphrase "
        "| Korean by its English |"
    )
    yield "|---|---|---|---|---|"
    for name, model in models.items():
        near = " | "
        if model.dimensions == original.shape[1]:
            cosines = np.sum(model.encode(texts) * original, axis=1)
            near = f"{cosines.mean():.4f} | {cosines.min():.4f}"
        alike, english = found_again(model)
        yield f"| {name} | {near} | {alike} | {english} |"


async def _alone(
    estimator: DifficultyEstimator, requests: Sequence[ChatRequest]
) -> tuple[list[float], float]:
    """Seconds of each, one after the other, and the mean of its CPU seconds."""
    for request in requests[:20]:
        await estimator.estimate([request])
    gc.collect()
    gc.disable()
    began = time.process_time()
    seconds = [await _timed(estimator, request) for request in requests]
    cpu = (time.process_time() - began) / len(requests)
    gc.enable()
    return seconds, cpu


async def _together(
    estimator: DifficultyEstimator, requests: Sequence[ChatRequest]
) -> tuple[list[float], float]:
    """Seconds of each while 64 clients ask, and how many are answered a second."""
    places = asyncio.Semaphore(CONCURRENT)

    async def one(request: ChatRequest) -> float:
        async with places:
            return await _timed(estimator, request)

    began = time.perf_counter()
    seconds = await asyncio.gather(*(one(request) for request in requests))
    return list(seconds), len(requests) / (time.perf_counter() - began)


async def _timed(estimator: DifficultyEstimator, request: ChatRequest) -> float:
    began = time.perf_counter()
    await estimator.estimate([request])
    return time.perf_counter() - began


def _told(seconds: Sequence[float]) -> tuple[str, str]:
    p99 = statistics.quantiles(seconds, n=100)[98]
    return f"{statistics.median(seconds) * 1e3:.2f}", f"{p99 * 1e3:.2f}"


def _padded(request: ChatRequest) -> ChatRequest:
    """The same ask, many times over."""
    text = str(request.messages[-1]["content"])
    content = (f"{text}\n" * (LONG // max(1, len(text)) + 1))[:LONG]
    return ChatRequest(id=request.id, messages=[{"role": "user", "content": content}])


if __name__ == "__main__":
    main()
