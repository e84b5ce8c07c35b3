"""A small model of difficulty for tests: made-up prompts of two kinds, and who can answer them."""

import hashlib

import numpy as np

from cascade.types import ChatRequest
from classifiers.artifact import EmbeddingIdentity, Origin, manifest_of, save
from classifiers.read import read
from evals.training.fit import Recipe, fit
from evals.training.rows import Rows

DIMENSIONS = 16
TIERS = ("small", "large")
MODELS = {"small": "tiny-1", "large": "huge-1"}

EASY = ("greet", "thank", "wish", "name", "list")
HARD = ("prove", "derive", "integrate", "factorise", "bound")
THINGS = ("cat", "boat", "tree", "river", "stone", "cloud", "lamp", "road", "field", "house")


class WordVectors:
    """An embedder that adds up a fixed random vector of each word."""

    def __init__(self, model="words-1", dimensions=DIMENSIONS):
        self.model = model
        self.dimensions = dimensions
        self.seen = []

    async def embed(self, texts):
        self.seen.extend(texts)
        return self.encode(texts)

    def encode(self, texts):
        rows = np.stack([self._one(text) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _one(self, text):
        words = text.lower().split() or ["nothing"]
        return np.sum([_vector(word, self.dimensions) for word in words], axis=0)


def _vector(word, dimensions):
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:4])
    return np.random.default_rng(seed).normal(size=dimensions)


def ask(text, **fields):
    return ChatRequest(id="r", messages=[{"role": "user", "content": text}], **fields)


def prompts(count=240, seed=0):
    """Prompts, half of them hard, and how each tier did: the small one fails on hard ones."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(count):
        hard = number % 2 == 1
        verb, thing = rng.choice(HARD if hard else EASY), rng.choice(THINGS)
        texts.append(f"{verb} the {thing} of the {rng.choice(THINGS)}")
        labels.append([float(rng.random() < (0.15 if hard else 0.9)), float(rng.random() < 0.85)])
    return texts, np.array(labels)


def rows(count=240, seed=0, *, embedded=True, requests=None):
    texts, labels = prompts(count, seed)
    seen = [read(ask(text)) for text in texts]
    return Rows(
        tiers=TIERS,
        features=[dict(each.features) for each in seen],
        labels=labels,
        groups=np.array([f"g{number}" for number in range(count)]),
        embeddings=WordVectors().encode([each.text for each in seen]) if embedded else None,
    )


def artifact(folder, *, recipe=None, models=None, embedded=True, name="model.json", **more):
    """An artifact in the folder, fitted on `rows`; its file name. More is said in its manifest."""
    recipe = recipe or Recipe(components=8, inside=0.98)
    model = fit(rows(embedded=embedded), recipe)
    manifest = manifest_of(
        model,
        models=models or MODELS,
        embedding=EmbeddingIdentity(model="words-1", dimensions=DIMENSIONS) if embedded else None,
        quantile=recipe.inside,
        origin=Origin(data="0", rows={"fit": 240}, versions={}, fitted_at="2026-01-01T00:00:00"),
        **more,
    )
    save(folder / name, manifest, model)
    return name
