import random
from dataclasses import replace

import numpy as np
import pytest

from evals.escalation import Scored, lead
from evals.metrics import auroc
from evals.panel_choice import choose
from evals.panel_fit import (
    FitError,
    FittedPanel,
    JudgedRow,
    cross_fitted,
    fit_panel,
    tabulate,
)
from judges.fitted import Artifact, Head, PanelModel, model_of, sigmoid

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


def model(fitted: FittedPanel) -> PanelModel:
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
                "features": [feature.model_dump() for feature in fitted.features],
                "heads": {tier: head.model_dump() for tier, head in fitted.heads.items()},
            }
        )
    )


@pytest.mark.parametrize(
    ("kind", "count"), [("logistic", 200), ("logistic", 400), ("boosted", 200), ("auto", 200)]
)
def test_what_is_fitted_tells_right_from_wrong_on_rows_it_has_not_seen(
    kind: str, count: int
) -> None:
    fitted = model(fit_panel(rows(count, 1), TIERS, kind=kind))
    unseen = rows(400, 2)
    for tier in TIERS:
        scores = [fitted(row.features)[tier] for row in unseen]
        right = [row.right[tier] for row in unseen]
        assert (auroc(scores, right) or 0) > 0.8
        # calibrated: in the mean as many are right as it says
        assert sum(scores) / len(scores) == pytest.approx(sum(right) / len(right), abs=0.06)


def test_each_tier_is_told_by_what_matters_to_it() -> None:
    fitted = model(fit_panel(rows(400, 1), TIERS, kind="logistic"))
    base = {"j.x": 0.0, "j.z": 0.0, "j.noise": 0.0, "j.constant": 1.0}
    low, high = fitted(base | {"j.x": -2.0}), fitted(base | {"j.x": 2.0})
    assert high["small"] - low["small"] > 0.5
    assert abs(high["large"] - low["large"]) < 0.25


def scores(fitted: PanelModel, some: list[JudgedRow]) -> list[Scored]:
    found = []
    for row in some:
        chances = fitted(row.features)
        found.append(
            Scored(
                small=chances["small"],
                large=chances["large"],
                length=row.length,
                small_right=row.right["small"],
                large_right=row.right["large"],
            )
        )
    return found


def test_where_the_rows_tell_whom_going_up_mends_uplift_beats_doubt() -> None:
    found = scores(model(fit_panel(rows(400, 1), TIERS, kind="logistic")), rows(400, 2))
    low, _ = lead(found, "uplift", "doubt", 0.4)
    assert low > 0.02


def test_where_they_do_not_uplift_is_doubt() -> None:
    """The large model's luck has nothing to do with any feature."""
    rng = random.Random(7)  # noqa: S311 - made-up data
    lucky = [
        replace(row, right={**row.right, "large": row.right["small"] or rng.random() < 0.5})
        for row in rows(300, 1)
    ]
    fitted = fit_panel(lucky, TIERS, kind="logistic")
    assert not fitted.heads["large"].weights
    found = scores(model(fitted), rows(300, 2))
    assert lead(found, "uplift", "doubt", 0.4) == (0.0, 0.0)


def test_what_is_held_out_is_told_by_models_that_had_not_seen_the_group() -> None:
    """Labels that follow the group alone cannot be told of a group that was not seen."""
    made = rows(200, 1)
    by_group = [
        replace(
            row,
            group=str(number // 10),
            features={"j.group": float(number // 10)},
            right={"small": number // 10 % 2 == 0},
        )
        for number, row in enumerate(made)
    ]
    fitted = fit_panel(by_group, TIERS[:1], kind="boosted")
    area = auroc(fitted.held_out, [row.right["small"] for row in by_group])
    assert (area or 0) < 0.7
    seen = fit_panel(made, TIERS[:1], kind="logistic")
    assert len(seen.held_out) == len(made)
    assert (auroc(seen.held_out, [row.right["small"] for row in made]) or 0) > 0.8


@pytest.mark.parametrize("kind", ["logistic", "boosted", "blend"])
def test_the_written_model_is_the_fitted_one_to_the_last_digits(kind: str) -> None:
    """Pure Python on the artifact gives what scikit-learn gives on the same rows."""
    made = rows(200, 3)
    table, labels = tabulate(made), np.array([row.right["small"] for row in made])
    chosen = choose(table, labels, kind, 0, [[1, 2], [0]])
    chosen.fit(table, labels)
    head = Head(**chosen.part(table.raw.shape[1]))
    wanted = chosen.log_odds(table)
    written = model(FittedPanel(list(table.features), {"small": head}, []))
    for row, log_odds in zip(made[:50], wanted[:50], strict=True):
        assert written(row.features)["small"] == pytest.approx(sigmoid(float(log_odds)), abs=1e-4)


def test_a_feature_that_never_varies_is_left_out_and_one_that_lacks_is_optional() -> None:
    fitted = fit_panel(rows(100, 1), TIERS, kind="logistic")
    assert {f.name: f.optional for f in fitted.features} == {
        "j.noise": False,
        "j.sometimes": True,
        "j.x": False,
        "j.z": False,
    }


def test_too_few_labels_a_missing_answer_and_an_unknown_kind_are_refused() -> None:
    with pytest.raises(FitError, match="at least 40"):
        fit_panel(rows(39, 1), TIERS)
    with pytest.raises(FitError, match="100 rows have no answer of tier medium, first 0"):
        fit_panel(rows(100, 1), ["medium"])
    with pytest.raises(FitError, match="no kind of model 'deep'"):
        fit_panel(rows(100, 1), TIERS, kind="deep")
    same = [
        JudgedRow(
            prompt="p", kind="k", group="g", split="fit", features={"a": 1.0}, right={}, length=1
        )
    ]
    with pytest.raises(FitError, match="no feature differs"):
        fit_panel(same * 50, TIERS)


def test_cross_fitted_heads_have_not_seen_the_group_that_they_tell_of() -> None:
    made = rows(200, 1)
    everyone = np.arange(len(made))
    folds = [(everyone[everyone % 4 != part], everyone[everyone % 4 == part]) for part in range(4)]
    told = cross_fitted(made, TIERS, folds, kind="logistic")
    right = [row.right["small"] for row in made]
    assert (auroc([chances["small"] for chances in told], right) or 0) > 0.8
    assert all(0.0 < chances["large"] < 1.0 for chances in told)
    # A label changes what rows of other folds are told, and nothing in its own.
    turned = [replace(made[0], right={**made[0].right, "large": not made[0].right["large"]})]
    again = cross_fitted(turned + made[1:], TIERS, folds, kind="logistic")
    moved = [after["large"] - before["large"] for before, after in zip(told, again, strict=True)]
    assert not any(moved[0::4])
    assert any(moved[1::4])
