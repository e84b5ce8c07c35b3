import random
from typing import Any

import pytest

from evals.metrics import auroc
from evals.panel_fit import FitError, JudgedRow, fit_heads
from judges.fitted import Artifact, PanelModel, model_of

TIERS = ["small", "large"]


def rows(count: int, seed: int) -> list[JudgedRow]:
    """The small model is right when x is high; the large one when z is, whatever x is."""
    rng = random.Random(seed)  # noqa: S311 - made-up data
    made = []
    for number in range(count):
        x, z, noise = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
        features = {"j.x": x, "j.z": z, "j.noise": noise, "j.constant": 1.0}
        if number % 3:
            features["j.sometimes"] = x + rng.gauss(0, 1)
        right = {"small": x + rng.gauss(0, 0.7) > 0, "large": z + rng.gauss(0, 0.7) > -0.5}
        made.append(
            JudgedRow(
                prompt=str(number),
                kind="k",
                group=str(number),
                split="fit",
                features=features,
                right=right,
                length=1,
            )
        )
    return made


def model(fitted: tuple[Any, Any]) -> PanelModel:
    features, heads = fitted
    manifest = {
        "judged": "small",
        "models": {},
        "members": {},
        "data": "",
        "rows": {},
        "fitted_at": "",
    }
    return model_of(
        Artifact.model_validate(
            {
                "kind": "panel_model",
                "manifest": manifest,
                "features": [feature.model_dump() for feature in features],
                "heads": {tier: head.model_dump() for tier, head in heads.items()},
            }
        )
    )


@pytest.mark.parametrize("kind", ["logistic", "boosted", "blend"])
@pytest.mark.parametrize("count", [200, 400])  # Platt's line, isotonic
def test_what_is_fitted_tells_right_from_wrong_on_rows_it_has_not_seen(
    kind: str, count: int
) -> None:
    fitted = model(fit_heads(rows(count, 1), TIERS, kind=kind))
    unseen = rows(400, 2)
    for tier in TIERS:
        scores = [fitted(row.features)[tier] for row in unseen]
        right = [row.right[tier] for row in unseen]
        assert (auroc(scores, right) or 0) > 0.8
        # calibrated: in the mean as many are right as it says
        assert sum(scores) / len(scores) == pytest.approx(sum(right) / len(right), abs=0.06)


def test_each_tier_is_told_by_what_matters_to_it() -> None:
    fitted = model(fit_heads(rows(400, 1), TIERS))
    base = {"j.x": 0.0, "j.z": 0.0, "j.noise": 0.0, "j.constant": 1.0}
    low, high = fitted(base | {"j.x": -2.0}), fitted(base | {"j.x": 2.0})
    assert high["small"] - low["small"] > 0.5
    assert abs(high["large"] - low["large"]) < 0.25


def test_the_written_model_is_the_fitted_one_to_the_last_digits() -> None:
    """Pure Python on the artifact gives what scikit-learn gives on the same rows."""
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier

    from evals.panel_fit import _Boosted, tabulate

    made = rows(300, 3)
    table, labels = tabulate(made), np.array([row.right["small"] for row in made])
    boosted = _Boosted(0)
    boosted.fit(table, labels)
    part = boosted.part()
    assert isinstance(boosted._model, GradientBoostingClassifier)  # noqa: SLF001
    wanted = boosted.log_odds(table.raw, table.standard)
    for values, log_odds in zip(table.raw[:50], wanted[:50], strict=True):
        found = part["base"] + sum(tree(list(values)) for tree in part["trees"])
        assert found == pytest.approx(float(log_odds), abs=1e-3)


def test_a_feature_that_never_varies_is_left_out_and_one_that_lacks_is_optional() -> None:
    features, _ = fit_heads(rows(100, 1), TIERS, kind="logistic")
    assert {f.name: f.optional for f in features} == {
        "j.noise": False,
        "j.sometimes": True,
        "j.x": False,
        "j.z": False,
    }


def test_too_few_labels_a_missing_answer_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(FitError, match="at least 40"):
        fit_heads(rows(39, 1), TIERS)
    with pytest.raises(FitError, match="100 rows have no answer of tier medium, first 0"):
        fit_heads(rows(100, 1), ["medium"])
    with pytest.raises(FitError, match="no kind of model 'deep'"):
        fit_heads(rows(100, 1), TIERS, kind="deep")
    same = [
        JudgedRow(
            prompt="p", kind="k", group="g", split="fit", features={"a": 1.0}, right={}, length=1
        )
    ]
    with pytest.raises(FitError, match="no feature differs"):
        fit_heads(same * 50, [])
