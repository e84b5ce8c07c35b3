"""The embedding model that training uses: one of the configuration's, asked for texts directly."""

import inspect
from pathlib import Path

from cascade.errors import ConfigError
from cascade.registry import load
from classifiers.embedding import EmbeddingModel, OnnxModel
from classifiers.registry import EMBEDDERS
from serving.commands.options import load as load_config
from serving.config import Embedder, find
from serving.factories import at, build


def embedding_model(config: Path | None, name: str | None) -> EmbeddingModel:
    """The model of an embedder, without the batches and the cache that serving puts around it.

    Args:
        config: the configuration file; None: the usual one, if it is there.
        name: of the embedder; None: the first there is, or else the one that comes with Cascade.

    Raises:
        ConfigError: there is no such embedder, or its model cannot be loaded.
    """
    if name is None and config is None and not find(None).exists():
        return OnnxModel()
    file = load_config(config)
    known = file.config.embedders
    if name is None and not known:
        return OnnxModel()
    chosen = name if name is not None else next(iter(known))
    if chosen not in known:
        there = ", ".join(known) or "none"
        raise ConfigError(f"{file.path}: there is no embedder {chosen!r}; there are: {there}")
    try:
        return _built(chosen, known[chosen], file.path.parent)
    except ConfigError as error:
        raise file.explain(error) from None


def _built(name: str, entry: Embedder, base: Path) -> EmbeddingModel:
    factory = load(EMBEDDERS, "embedder", entry.type)
    ours = {"base": base} if "base" in inspect.signature(factory).parameters else {}
    where = f"embedders.{name}"
    model: EmbeddingModel = build(factory, where, entry.options, ours)
    with at(where):
        model.load()
    return model
