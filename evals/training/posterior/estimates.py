"""What an estimator says of stored prompts before any call, by a model that had not seen them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cascade.posterior import PRIOR
from cascade.protocols import DifficultyEstimator
from classifiers.artifact import load
from classifiers.learned import LearnedEstimator
from classifiers.model import DifficultyModel
from classifiers.text import Extraction
from evals.training.encoding import embedding_model
from evals.training.fit import Recipe, apply, fit
from evals.training.posterior.candidates import Folds, Matrix
from evals.training.rows import Rows, TrainingError
from evals.training.sources import Source, rows_of
from serving.config import ConfigFile

Estimates = Mapping[str, Mapping[str, float]]
"""By prompt and tier."""


class Named(NamedTuple):
    """An estimator and its name in a configuration; None for none."""

    name: str | None
    estimator: DifficultyEstimator | None

    @property
    def learned(self) -> bool:
        """Whether it was fitted, so that it has to be fitted anew for each fold."""
        return isinstance(self.estimator, LearnedEstimator)


def estimates(
    source: Source,
    named: Named,
    file: ConfigFile,
    folds: Folds,
    done: Callable[[], None] = lambda: None,
) -> Estimates:
    """Of every prompt.

    Args:
        source: the prompts, those of the split "fit" first.
        named: whose word is wanted.
        file: the configuration that it is of.
        folds: of the fit prompts; of a learned estimator they get what a model says that was fitted
            in its way on the other folds, and all other prompts what its artifact says.
        done: called after each fold.

    Raises:
        TrainingError: it asks a model, or does not know a tier.
        ConfigError: its artifact or its embedder cannot be used.
    """
    estimator = named.estimator
    if estimator is None:
        return {line.request.id: dict.fromkeys(source.tiers, PRIOR) for line in source.lines}
    if estimator.asks is not None:
        raise TrainingError(
            f"the estimator {named.name} asks a model, and nobody stored what it said; put its "
            "estimates into a table of their own (docs/posterior.md)"
        )
    if isinstance(estimator, LearnedEstimator):
        return _learned(source, named, file, folds, done)
    requests = [line.request for line in source.lines]
    told = asyncio.run(_told(estimator, source))
    if lacking := [tier for tier in source.tiers if tier not in told[0]]:
        raise TrainingError(f"the estimator {named.name} says nothing of the tier {lacking[0]}")
    return {
        request.id: {tier: mean[tier] for tier in source.tiers}
        for request, mean in zip(requests, told, strict=True)
    }


async def _told(estimator: DifficultyEstimator, source: Source) -> list[Mapping[str, float]]:
    beliefs = await estimator.estimate([line.request for line in source.lines])
    return [each.mean for each in beliefs]


def _learned(
    source: Source,
    named: Named,
    file: ConfigFile,
    folds: Folds,
    done: Callable[[], None],
) -> Estimates:
    entry = file.config.estimators[str(named.name)]
    manifest, model = load(file.path.parent / entry.options["artifact"])
    if list(manifest.models) != list(source.tiers):
        raise TrainingError(
            f"the estimator {named.name} was fitted for the tiers {', '.join(manifest.models)}; "
            f"the outcomes are of {', '.join(source.tiers)}"
        )
    if not manifest.origin.recipe:
        raise TrainingError(
            f"the artifact of {named.name} does not say how it was fitted, so it cannot be fitted "
            "anew for each fold"
        )
    encode = None
    if manifest.embedding is not None:
        encode = embedding_model(file.path, entry.embedder).encode
    extraction = Extraction.of(manifest.extraction, "artifact.extraction")
    rows = rows_of(source, encode, extraction=extraction)
    means = _answered(model, rows)
    recipe = Recipe(**manifest.origin.recipe)
    fitted_on = rows.take(np.flatnonzero(np.array([each.split for each in source.lines]) == "fit"))
    for train, test in folds:
        means[test] = _answered(fit(fitted_on.take(train), recipe), fitted_on.take(test))
        done()
    return {
        line.request.id: dict(zip(source.tiers, map(float, mean), strict=True))
        for line, mean in zip(source.lines, means, strict=True)
    }


def _answered(model: DifficultyModel, rows: Rows) -> Matrix:
    """What the estimator says of rows: where they are out of its domain, its prior."""
    means, out = apply(model, rows)
    means[out] = model.prior
    return means
