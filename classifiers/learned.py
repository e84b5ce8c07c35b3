"""Estimates from a model that `cascade train` fitted on outcomes: which tier will do.

A request unlike everything in the training data gets the artifact's prior and the flag
"out_of_domain", since a learned estimate would be a guess that looks like knowledge.
"""

import asyncio
import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cascade.embedding import Embedding
from cascade.errors import ConfigError, EstimatorError
from cascade.protocols import Embedder
from cascade.types import Beliefs, ChatRequest
from classifiers.artifact import Manifest, load
from classifiers.features import TEXT
from classifiers.read import read
from classifiers.text import Extraction

OUT_OF_DOMAIN = "out_of_domain"
_ROOM = 1e-6


class LearnedEstimator:
    """Applies an artifact.

    Args:
        name: how the audit log calls it.
        artifact: the manifest that `cascade train` wrote; relative to the configuration.
        embedder: whose vectors the artifact was fitted on; None only where it looks at none.
        base: folder that the artifact's path starts from.
        models: by tier, the name of the model that serves it; None: they are not held against the
            artifact's.
        strict: refuse to start when a tier's model is another than the one learned from, or a tier
            is one that nothing was learned of.
        history_weight: log-odds by which every tier but the last is lowered when the session had to
            go up lately, at an escalation of 1. Not measured: a guess, until sessions are among the
            training rows. 0 is off; unused by an artifact that has learned what it means.
        seconds: that the embedding may take; then there is no estimate, and the request goes on.

    Attributes:
        manifest: the artifact's.
        digest: tells the model from any other.
        warnings: what may not work as it was meant.

    Raises:
        ConfigError: the artifact cannot be used, or not with this embedder and these tiers.
    """

    asks: str | None = None

    def __init__(
        self,
        *,
        name: str = "learned",
        artifact: str,
        embedder: Embedder | None = None,
        base: Path = Path(),
        models: Mapping[str, str | None] | None = None,
        strict: bool = False,
        history_weight: float = 1.0,
        seconds: float = 0.25,
    ) -> None:
        if not math.isfinite(history_weight) or history_weight < 0.0:
            raise ConfigError("history_weight is 0 or more", param="history_weight")
        if not seconds > 0.0:
            raise ConfigError("it must be above 0", param="seconds")
        try:
            self.manifest, self._model = load(base / artifact)
            found = [] if models is None else _check_models(self.manifest, models)
            if found and strict:
                raise ConfigError(found[0])  # noqa: TRY301 - said with the key, as the others are
        except ConfigError as error:
            raise ConfigError(error.message, param="artifact") from None
        _refuse_foreign(self.manifest, embedder)
        self.name = name
        self.digest = _digest(self.manifest)
        self.warnings = found
        self._embedder = embedder if self.manifest.embedding else None
        self._extraction = Extraction.of(self.manifest.extraction, "artifact.extraction")
        known = "escalation" in self.manifest.features
        self._history_weight = 0.0 if known else history_weight
        self._seconds = seconds

    async def estimate(self, requests: Sequence[ChatRequest]) -> list[Beliefs]:
        """One Beliefs a request.

        Raises:
            EstimatorError: there is no embedding, or not in time.
        """
        seen = [read(request, self._extraction) for request in requests]
        texts = [each.text for each in seen]
        vectors = await self._embedded(texts)
        return [
            self._beliefs(
                request.escalation, seen[at].features, None if vectors is None else vectors[at]
            )
            for at, request in enumerate(requests)
        ]

    def again(
        self, features: Mapping[str, float], embedding: Embedding | None, escalation: float
    ) -> Beliefs | None:
        """The estimate for a request of the audit log, from what that keeps of it.

        Args:
            features: its text's and its own.
            embedding: of what was classified, where it is kept.
            escalation: how much its session had had to go up.

        Returns:
            None where that is not enough: another kind of estimator looked at it, or there is no
            embedding by the model that the artifact was fitted on.
        """
        fitted = self.manifest.embedding
        if not features.keys() >= set(TEXT):
            return None
        if fitted is None:
            return self._beliefs(escalation, features, None)
        if embedding is None or embedding.model != fitted.model:
            return None
        return self._beliefs(escalation, features, np.asarray(embedding.vector, dtype=np.float32))

    async def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        if self._embedder is None or not texts:
            return None
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._embedder.embed(texts)
        except TimeoutError:
            if not limit.expired():
                raise
            raise EstimatorError(f"there was no embedding within {self._seconds:g} s") from None

    def _beliefs(
        self,
        escalation: float,
        features: Mapping[str, float],
        vector: NDArray[np.float32] | None,
    ) -> Beliefs:
        # One at a time: sums of a matrix are rounded otherwise than those of a row.
        (means,), (out,) = self._model(None if vector is None else vector[None, :], [features])
        return Beliefs(
            mean=self._mean(escalation, means),
            flags=frozenset({OUT_OF_DOMAIN} if out else ()),
            features=features,
            embedding=self._embedding(vector),
        )

    def _mean(self, escalation: float, means: NDArray[np.float64]) -> dict[str, float]:
        told = dict(zip(self._model.tiers, map(float, means), strict=True))
        lowered = self._history_weight * escalation
        if lowered <= 0.0:
            return told
        last = self._model.tiers[-1]
        return {tier: p if tier == last else _less(p, lowered) for tier, p in told.items()}

    def _embedding(self, vector: NDArray[np.float32] | None) -> Embedding | None:
        if vector is None or self._embedder is None:
            return None
        return Embedding(model=self._embedder.model, vector=vector.tolist())


def _digest(manifest: Manifest) -> str:
    """Of all that decides: the manifest holds calibration and limits, and a hash of the arrays."""
    content = manifest.model_dump_json(exclude={"origin"})
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _check_models(manifest: Manifest, served: Mapping[str, str | None]) -> list[str]:
    """What must be said of an artifact's tiers and models, held against those that serve."""
    fitted = list(manifest.models)
    for tier in fitted:
        if tier not in served:
            there = ", ".join(served) or "none"
            raise ConfigError(f"it was fitted for a tier {tier!r}; there are: {there}")
    for tier, other in zip(fitted, [name for name in served if name in fitted], strict=True):
        if tier != other:
            raise ConfigError(
                f"it was fitted for the tiers {', '.join(fitted)} in that order, the cheapest "
                f"first; the configuration has {other!r} before {tier!r}"
            )
    unknown = [
        f"it was not fitted for tier {tier!r} and says nothing of it"
        for tier in served
        if tier not in fitted
    ]
    return unknown + [
        f"it was fitted on answers of {model}, and tier {tier} serves {served[tier]}; "
        "its estimates may mean nothing"
        for tier, model in manifest.models.items()
        if model and served[tier] != model
    ]


def _refuse_foreign(manifest: Manifest, embedder: Embedder | None) -> None:
    fitted = manifest.embedding
    if fitted is None:
        return
    if embedder is None:
        raise ConfigError(
            f"the artifact was fitted on embeddings of {fitted.model}: name the embedder that "
            "gives them",
            param="embedder",
        )
    if (embedder.model, embedder.dimensions) != (fitted.model, fitted.dimensions):
        raise ConfigError(
            f"the artifact was fitted on embeddings of {fitted.model} with {fitted.dimensions} "
            f"dimensions, this embedder gives those of {embedder.model} with "
            f"{embedder.dimensions}: name that embedder, or train again",
            param="embedder",
        )


def _less(chance: float, log_odds: float) -> float:
    inside = min(1.0 - _ROOM, max(_ROOM, chance))
    return 1.0 / (1.0 + math.exp(log_odds) * (1.0 - inside) / inside)
