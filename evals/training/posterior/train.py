"""From rows to a posterior with its manifest: fitted on the fit rows, measured on the test rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from cascade.posterior import Identity, Manifest, Model
from evals.training.posterior.fit import Fitted, Recipe, fit_posterior
from evals.training.posterior.measure import measured, told
from evals.training.posterior.rows import JudgedPrompt, digest, labels_of

PACKAGES = ("cascade-router", "numpy", "scikit-learn")
SPLITS = ("fit", "calibrate", "test")


def train(
    rows: Sequence[JudgedPrompt],
    models: Mapping[str, str],
    *,
    judges: Mapping[str, Identity],
    estimator: Identity,
    recipe: Recipe | None = None,
    done: Callable[[], None] = lambda: None,
) -> Model:
    """Fit a posterior and write down what it is worth.

    Args:
        rows: of all splits; those of "calibrate" are left alone.
        models: by tier, cheapest first, whose answers the rows are about; empty where not known.
        judges: by tier, whose verdicts on its answers the rows hold.
        estimator: whose estimates.
        recipe: how it is fitted.
        done: called after each set of judged tiers.

    Raises:
        TrainingError: too few rows or groups.
    """
    recipe = recipe or Recipe()
    used = [row for row in rows if row.split == "fit"]
    tested = [row for row in rows if row.split == "test"]
    tiers = list(models)
    fitted = fit_posterior(used, tiers, judges, recipe, done)
    manifest = Manifest(
        models=models,
        judges=judges,
        estimator=estimator,
        rates={tier: round(float(labels_of(used, tier).mean()), 6) for tier in tiers},
        data=digest(used),
        rows={split: sum(row.split == split for row in rows) for split in SPLITS},
        versions={name: version(name) for name in PACKAGES},
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
        metrics={
            "recipe": asdict(recipe),
            "chosen": _chosen(fitted, tiers),
            "cross_validated": measured(used, tiers, fitted.held_out, fitted.heads),
        },
    )
    model = Model(manifest=manifest, heads=fitted.heads, kappas=fitted.kappas)
    if not tested:
        return model
    means = told(model, tested, fitted.held_out)
    test = measured(tested, tiers, means, fitted.heads)
    metrics = {**manifest.metrics, "test": test}
    return replace(model, manifest=replace(manifest, metrics=metrics))


def _chosen(fitted: Fitted, tiers: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"tried": [tier for tier in tiers if tier in tried], "heads": dict(names)}
        for tried, names in fitted.chosen.items()
    ]
