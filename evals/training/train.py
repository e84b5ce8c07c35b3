"""From rows to an artifact: cross-validated, fitted on all that may be used, measured on the rest.

Rows of the split "test" are only measured on, and those of "calibrate" are left alone, for
certificates of thresholds that come later.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from classifiers.artifact import EmbeddingIdentity, Manifest, Origin, manifest_of
from classifiers.model import DifficultyModel
from classifiers.text import DEFAULT, Extraction
from evals.training.fit import Recipe, apply, fit
from evals.training.fitters import folds, without_fold
from evals.training.measure import by_kind, kind_gains, measured
from evals.training.rows import Matrix, Rows

PACKAGES = ("cascade-router", "numpy", "scikit-learn")
KEPT_OUT = ("test", "calibrate")


def train(
    rows: Rows,
    recipe: Recipe,
    *,
    models: Mapping[str, str],
    embedding: EmbeddingIdentity | None,
    extraction: Extraction = DEFAULT,
    count: int = 5,
    done: Callable[[], None] = lambda: None,
) -> tuple[Manifest, DifficultyModel]:
    """Fit a model and write down what it is worth.

    Args:
        rows: all of them.
        recipe: how it is fitted.
        models: by tier, the model whose answers the rows are about, where that is known.
        embedding: whose vectors the rows hold; None without any.
        extraction: what of each request the rows were read from.
        count: folds of the cross-validation.
        done: called after each fold.

    Raises:
        TrainingError: too few rows, labels or groups.
    """
    splits = np.zeros(len(rows), "U1") if rows.splits is None else rows.splits
    used = rows.take(~np.isin(splits, KEPT_OUT))
    tested = rows.take(splits == "test")
    used.check()
    metrics: dict[str, Any] = {"cross_validated": cross_validated(used, recipe, count, done)}
    model = fit(used, recipe)
    if len(tested):
        metrics["test"] = _tested(model, used, tested)
    origin = Origin(
        data=used.digest(),
        rows={"fit": len(used), "calibrate": int((splits == "calibrate").sum())}
        | {"test": len(tested)},
        versions=_versions(recipe),
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        recipe=recipe.settings(),
        metrics=metrics,
    )
    written = manifest_of(
        model,
        models={tier: models.get(tier, "") for tier in rows.tiers},
        embedding=embedding,
        quantile=recipe.inside,
        origin=origin,
        extraction=extraction,
    )
    return written, model


def _tested(model: DifficultyModel, used: Rows, tested: Rows) -> Mapping[str, Any]:
    means, out = apply(model, tested)
    found = measured(tested, means, out, kind_gains(used, tested))
    return {**found, "kinds": by_kind(tested, means)}


def cross_validated(
    rows: Rows, recipe: Recipe, count: int, done: Callable[[], None] = lambda: None
) -> Mapping[str, Any]:
    """What is told of each row by a model that was fitted without its fold, measured."""
    means = np.zeros_like(rows.labels)
    out = np.zeros(len(rows), dtype=bool)
    lookup: Matrix | None = np.zeros(len(rows))
    parts = folds(rows.groups, count, recipe.seed)
    for number, (train_at, test_at) in enumerate(parts, 1):
        known, some = rows.take(train_at), rows.take(test_at)
        with without_fold(number, len(parts)):
            model = fit(known, recipe)
        means[test_at], out[test_at] = apply(model, some)
        gains = kind_gains(known, some)
        if gains is None or lookup is None:
            lookup = None
        else:
            lookup[test_at] = gains
        done()
    found = measured(rows, means, out, lookup)
    return {"folds": count, **found, "kinds": by_kind(rows, means)}


def _versions(recipe: Recipe) -> dict[str, str]:
    packages = (*PACKAGES, "torch") if recipe.head == "network" else PACKAGES
    return {name: version(name) for name in packages}
