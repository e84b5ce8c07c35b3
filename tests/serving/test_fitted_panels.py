import json

import pytest

from cascade.errors import ConfigError
from serving.config import ConfigFile
from serving.wiring import Wiring

CONFIG = """\
tiers:
  small: {backend: openai_http, url: http://127.0.0.1:1/v1, model: tiny, capabilities: [logprobs]}
  large: {backend: scripted}
judges:
  sure: {type: logprob}
  sound: {type: panel, members: [sure], artifact: sound.json}
policies:
  up: {type: ladder, steps: [{tier: small, judge: sound, accept_at: 0.5}, {tier: large}]}
"""
FLAT = {"weights": [1.0], "calibration": {"kind": "platt", "slope": 1.0, "offset": 0.0}}


def wired(folder, text=CONFIG, **manifest):
    made = {
        "judged": "small",
        "models": {"small": "tiny"},
        "members": {"sure": {"type": "logprob", "statistic": "mean"}},
        "data": "",
        "rows": {},
        "fitted_at": "",
    }
    content = {
        "kind": "panel_model",
        "manifest": made | manifest,
        "features": [{"name": "sure.mean", "mean": 0.0, "scale": 1.0}],
        "heads": {"small": FLAT, "large": FLAT},
    }
    (folder / "sound.json").write_text(json.dumps(content))
    path = folder / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, folder).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def test_a_panel_that_fits_its_artifact_is_served_without_a_warning(tmp_path):
    snapshot = wired(tmp_path)
    assert snapshot.warnings == ()
    assert snapshot.judges["sound"].needs["logprobs"] is True


def test_another_artifact_is_another_configuration(tmp_path):
    assert wired(tmp_path).version != wired(tmp_path, fitted_at="later").version


def test_another_model_behind_the_tier_is_a_warning_and_refused_when_strict(tmp_path):
    (warning,) = wired(tmp_path, models={"small": "huge"}).warnings
    assert warning == (
        "judge sound: it was fitted on answers of huge, and tier small serves tiny; "
        "its scores may mean nothing"
    )
    strict = CONFIG.replace("artifact: sound.json", "artifact: sound.json, strict: true")
    with pytest.raises(ConfigError, match=r":6: judges\.sound\.artifact: it was fitted on .* huge"):
        wired(tmp_path, strict, models={"small": "huge"})


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ({"members": {}}, "fitted on the members , this panel has sure"),
        ({"members": {"sure": {"type": "format"}}}, "type 'format', its member sure has 'logprob'"),
        ({"members": {"sure": {"statistic": "min"}}}, "'min', its member sure has 'mean'"),
        ({"models": {"medium": "m"}}, "there is no tier 'medium'"),
    ],
)
def test_a_panel_that_does_not_fit_its_artifact_is_refused(tmp_path, manifest, complaint):
    with pytest.raises(ConfigError, match=complaint):
        wired(tmp_path, **manifest)


def test_an_option_that_is_a_pair_by_default_is_the_list_that_the_artifact_kept(tmp_path):
    twice = CONFIG.replace("{type: logprob}", "{type: agreement}")
    assert wired(tmp_path, twice, members={"sure": {"band": [0.3, 0.8]}}).warnings == ()
    with pytest.raises(ConfigError, match=r"fitted for band \[0\.2, 0\.8\]"):
        wired(tmp_path, twice, members={"sure": {"band": [0.2, 0.8]}})


def test_an_artifact_that_is_not_there_names_its_line(tmp_path):
    with pytest.raises(ConfigError, match=r":6: judges\.sound.*none\.json: no such artifact"):
        wired(tmp_path, CONFIG.replace("sound.json", "none.json"))
