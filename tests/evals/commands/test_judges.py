"""On the committed outcomes of the embedded models, which take seconds to fit on."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cascade.errors import ConfigError
from evals.commands.judges import judges
from evals.files import ResultFileError
from judges.fitted import load_model

ROOT = Path(__file__).parents[3]
CONFIG = (
    (ROOT / "examples" / "panel.yaml")
    .read_text()
    .replace("../judges/artifacts/sound.json", "sound.json")
)
ASKING = (ROOT / "examples" / "panel_asking.yaml").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("panel")
    (made / "cascade.yaml").write_text(CONFIG)
    return made


def run(folder, *arguments):
    command, *rest = arguments
    return CliRunner().invoke(
        judges,
        [command, "--config", str(folder / "cascade.yaml"), *rest],
        catch_exceptions=False,
    )


@pytest.fixture(scope="module")
def fitted(folder):
    out = folder / "sound.json"
    result = run(folder, "fit", "--kind", "logistic", "--out", str(out))
    assert result.exit_code == 0, result.output
    return result.output, load_model(out)


def test_a_panel_is_fitted_and_says_how_good_it_is_on_rows_it_has_not_seen(fitted):
    output, model = fitted
    metrics = model.manifest.metrics
    area, low, high = metrics["auc"]
    assert 0.5 < low < area < high
    assert area > metrics["auc_length_only"][0]
    assert metrics["n"] == model.manifest.rows["test"]
    assert f"{area:.3f} │ {low:.3f} to {high:.3f}" in output
    assert metrics["auc_of_members"].keys() == {"confident", "well_formed", "words", "working"}
    assert set(model.heads) == {"small", "large"}
    assert model.manifest.models == {"small": "qwen2.5-coder-0.5b", "large": "qwen2.5-coder-1.5b"}


def test_escalating_by_uplift_beats_a_coin_and_is_never_below_doubt(fitted):
    _, model = fitted
    over = model.manifest.metrics["uplift_over"]
    for low, _ in over["random"][1:]:  # at 40 and 60 %
        assert low > 0
    accuracy = model.manifest.metrics["accuracy"]
    for uplift, doubt in zip(accuracy["uplift"], accuracy["doubt"], strict=True):
        assert uplift >= doubt


def test_what_it_measured_is_said_again_from_the_artifact(folder, fitted):
    _, model = fitted
    result = run(folder, "show")
    assert result.exit_code == 0
    for part in ("telling right from wrong", "what escalating gains"):
        assert part in result.output
    assert f"{model.manifest.metrics['auc'][0]:.3f}" in result.output
    printed = run(folder, "show", "--markdown").output
    assert "| the panel | 221 |" in printed
    assert "| joint | " in printed
    assert "│" not in printed


def test_judges_are_ranked_by_themselves_also_those_that_ask_a_model(tmp_path):
    (tmp_path / "cascade.yaml").write_text(ASKING.replace("artifact:", "# artifact:"))
    result = run(tmp_path, "rank", "--split", "all", "--markdown")
    assert result.exit_code == 0
    lines = {line.split("|")[1].strip(): line for line in result.output.splitlines()}
    assert {"well_formed", "working", "confident", "words", "again"} <= lines.keys()
    assert {"asked", "sound"}.isdisjoint(lines)
    assert float(lines["confident"].split("|")[3]) > 0.6


def test_a_picture_needs_a_name_that_says_so(folder, tmp_path):
    with pytest.raises(ResultFileError, match=r"must end in \.png"):
        run(folder, "fit", "--out", str(tmp_path / "x.json"), "--plot", str(tmp_path / "x.svg"))


def test_a_threshold_is_certified_on_rows_that_nothing_was_fitted_on(folder, fitted):
    _, model = fitted
    result = run(folder, "certify", "--json")
    assert result.exit_code == 0
    by_risk = {each["risk"]: each for each in json.loads(result.output)}
    assert by_risk["joint"]["labels"] == model.manifest.rows["calibrate"]
    for risk in ("joint", "loss"):
        found = by_risk[risk]
        assert 0 < found["threshold"] < 1
        assert found["bound"] <= 0.05
        assert 0 < found["acceptance"] < 1
    assert by_risk["selective"]["threshold"] is None
    assert "no number of labels" in by_risk["selective"]["reason"]


def test_too_few_labels_for_a_strong_guarantee_are_refused_with_how_many_it_takes(folder, fitted):
    with pytest.raises(Exception, match=r"it takes 4603, \d+ more"):
        run(folder, "certify", "--alpha", "0.001", "--delta", "0.01", "--risk", "joint")


def test_a_judge_that_is_no_panel_and_a_missing_artifact_are_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match="there is no panel 'working'"):
        run(folder, "fit", "--judge", "working", "--out", str(tmp_path / "x.json"))
    (tmp_path / "cascade.yaml").write_text(CONFIG.replace("artifact: sound.json", ""))
    with pytest.raises(ConfigError, match="`cascade judges fit` makes one"):
        run(tmp_path, "certify")


def test_a_folder_that_is_not_there_is_said_before_the_work(folder, tmp_path):
    with pytest.raises(Exception, match="there is no folder"):
        run(folder, "fit", "--out", str(tmp_path / "none" / "x.json"))
