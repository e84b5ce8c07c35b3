import json
from pathlib import Path
from typing import Any

import pytest

from cascade.errors import ConfigError
from judges.fitted import load_model, sigmoid

MANIFEST = {
    "judged": "small",
    "models": {"small": "tiny.gguf"},
    "members": {"confident": {"type": "logprob"}},
    "data": "abc",
    "rows": {"fit": 100},
    "fitted_at": "2026-01-01T00:00:00+00:00",
}
STUMP = {
    "feature": [1, -1, -1],
    "threshold": [0.5, 0, 0],
    "left": [1, 0, 0],
    "right": [2, 0, 0],
    "value": [0, -2.0, 2.0],
}


def artifact(**changes: Any) -> dict[str, Any]:
    content = {
        "kind": "panel_model",
        "manifest": MANIFEST,
        "features": [
            {"name": "a.x", "mean": 1.0, "scale": 2.0},
            {"name": "b.y", "mean": 0.0, "scale": 1.0, "optional": True},
        ],
        "heads": {
            "small": {
                "weights": [1.0, 0.0, -3.0],
                "intercept": 0.5,
                "trees": [STUMP],
                "base": 0.25,
                "calibration": {"kind": "platt", "slope": 2.0, "offset": 0.1},
            },
            "large": {
                "weights": [0.0, 0.0, 0.0],
                "intercept": 0.0,
                "calibration": {"kind": "isotonic", "x": [0.0, 1.0], "y": [0.2, 0.8]},
            },
        },
    }
    return content | changes


def written(folder: Path, content: Any) -> Path:
    path = folder / "panel.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_head_is_the_mean_of_its_models_log_odds_then_calibrated(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, artifact()))
    # a.x = 3 is one scale above its mean; b.y is 1, on the stump's right side, and not missing
    linear, boosted = 0.5 + 1.0, 0.25 + 2.0
    expected = sigmoid(2.0 * (linear + boosted) / 2 + 0.1)
    found = model({"a.x": 3.0, "b.y": 1.0})
    assert found["small"] == pytest.approx(expected)
    assert found["large"] == pytest.approx(0.5)


def test_a_missing_optional_feature_stands_at_its_mean_and_is_marked(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, artifact()))
    linear, boosted = 0.5 + 0.0 - 3.0, 0.25 - 2.0
    assert model({"a.x": 1.0})["small"] == pytest.approx(sigmoid(linear + boosted + 0.1))
    assert model.missing({}) == ["a.x"]
    assert model.missing({"a.x": 0.0}) == []


def test_a_head_with_neither_model_says_the_same_of_every_answer(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, broken("heads.small", {"intercept": -1.0})))
    assert model({"a.x": 3.0})["small"] == pytest.approx(sigmoid(-1.0))
    assert model({"a.x": -3.0})["small"] == model({"a.x": 3.0})["small"]


def test_a_higher_tier_is_told_for_the_answer_being_right_and_being_wrong(tmp_path: Path) -> None:
    cases = {"intercept": 1.0, "if_right": {"intercept": 3.0}}
    model = load_model(written(tmp_path, broken("heads.large", cases)))
    found = model({"a.x": 1.5})
    judged = found["small"]
    expected = judged * sigmoid(3.0) + (1 - judged) * sigmoid(1.0)
    assert found["large"] == pytest.approx(expected)


def test_where_nothing_tells_whom_going_up_mends_it_is_worth_most_in_doubt(tmp_path: Path) -> None:
    cases = {"intercept": 1.0, "if_right": {"intercept": 3.0}}
    model = load_model(written(tmp_path, broken("heads.large", cases)))
    found = [model({"a.x": step / 3}) for step in range(-9, 12)]
    by_doubt = sorted(range(len(found)), key=lambda at: found[at]["small"])
    by_uplift = sorted(range(len(found)), key=lambda at: found[at]["small"] - found[at]["large"])
    assert by_doubt == by_uplift


def test_a_calibration_that_is_none_leaves_the_probability(tmp_path: Path) -> None:
    model = load_model(written(tmp_path, broken("heads.small.calibration", None)))
    assert model({"a.x": 3.0})["small"] == pytest.approx(model.uncalibrated({"a.x": 3.0}))
    mapped = load_model(written(tmp_path, artifact()))
    assert mapped({"a.x": 3.0})["small"] != pytest.approx(mapped.uncalibrated({"a.x": 3.0}))


def test_log_odds_of_any_size_are_a_probability() -> None:
    assert (sigmoid(-1e6), sigmoid(0.0), sigmoid(1e6)) == (0.0, 0.5, 1.0)


def broken(path: str, value: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(artifact()))
    *steps, last = path.split(".")
    here: Any = content
    for step in steps:
        here = here[int(step)] if isinstance(here, list) else here[step]
    here[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        ([], "valid dictionary"),
        (artifact(kind="monotone_map"), "kind"),
        (artifact(extra=1), "extra"),
        (broken("features.0.scale", 0), "features.0.scale"),
        (broken("features.0.mean", float("nan")), "features.0.mean"),
        (broken("heads.small.weights", [1.0]), "1 weights for 3 values"),
        (broken("heads.small.trees", [{**STUMP, "left": [0, 0, 0]}]), "no children behind it"),
        (broken("heads.small.trees", [{**STUMP, "feature": [7, -1, -1]}]), "not there"),
        (broken("heads.small.trees", [{**STUMP, "value": [0]}]), "equally long"),
        (broken("heads.small.if_right", {"intercept": 1.0}), "which is for higher tiers"),
        (broken("heads.large.if_right", {"weights": [1.0]}), "1 weights for 3 values"),
        (broken("heads.large.if_right", {"if_right": {}}), "if_right of its own"),
        (
            broken("heads.large.calibration", {"kind": "isotonic", "x": [1, 0], "y": [0, 1]}),
            "increase",
        ),
        (broken("heads.small.calibration", {"kind": "platt", "slope": -1, "offset": 0}), "slope"),
        (broken("manifest.judged", "medium"), "none for the judged tier"),
    ],
)
def test_a_damaged_artifact_says_what_is_wrong(
    tmp_path: Path, content: Any, complaint: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_model(path)
    assert str(path) in caught.value.message


def test_a_missing_artifact_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such artifact"):
        load_model(tmp_path / "none.json")
