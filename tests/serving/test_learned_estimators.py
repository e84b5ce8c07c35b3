import pytest

from cascade.errors import ConfigError
from evals.training.fit import Recipe
from serving.config import ConfigFile
from serving.wiring import Wiring
from tests.learning import artifact

CONFIG = """\
tiers:
  small: {backend: openai_http, url: http://127.0.0.1:1/v1, model: tiny-1}
  large: {backend: openai_http, url: http://127.0.0.1:2/v1, model: huge-1}
estimators:
  learned: {type: learned, artifact: model.json}
policies:
  up: {type: fixed, tier: small, estimator: learned}
"""
GRADER = "  grader: {backend: openai_http, url: http://127.0.0.1:3/v1, model: judge-1}"
PLAIN = Recipe(head="linear")


def wired(folder, text=CONFIG):
    path = folder / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, folder).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


@pytest.fixture
def folder(tmp_path):
    artifact(tmp_path, recipe=PLAIN, embedded=False)
    return tmp_path


def test_an_artifact_that_fits_its_tiers_is_served_without_a_warning(folder):
    snapshot = wired(folder)
    assert snapshot.warnings == ()
    assert snapshot.arms["up"].estimator.name == "learned"


def test_another_artifact_is_another_configuration(folder):
    before = wired(folder).version
    artifact(folder, recipe=Recipe(head="linear", inside=0.9), embedded=False)
    assert wired(folder).version != before


def test_another_model_behind_a_tier_is_a_warning_and_refused_when_strict(folder):
    other = CONFIG.replace("huge-1", "huge-2")
    (warning,) = wired(folder, other).warnings
    assert warning.startswith("estimator learned: it was fitted on answers of huge-1")
    strict = other.replace("artifact: model.json", "artifact: model.json, strict: true")
    with pytest.raises(ConfigError, match=r":5: estimators\.learned\.artifact: .* huge-2"):
        wired(folder, strict)


def test_an_artifact_of_other_tiers_is_refused_with_its_line(folder):
    other = CONFIG.replace("  large:", "  big:")
    with pytest.raises(ConfigError, match=r":5: estimators\.learned\.artifact: .* 'large'"):
        wired(folder, other)


def test_tiers_in_another_order_are_refused_with_the_line(folder):
    small, large = CONFIG.split("\n")[1:3]
    turned = CONFIG.replace(f"{small}\n{large}", f"{large}\n{small}")
    with pytest.raises(ConfigError, match=r":5: estimators\.learned\.artifact: .*'large' before"):
        wired(folder, turned)


def test_a_tier_that_nothing_was_learned_of_is_a_warning(folder):
    text = CONFIG.replace("estimators:", f"{GRADER}\nestimators:")
    (warning,) = wired(folder, text).warnings
    assert (
        warning == "estimator learned: it was not fitted for tier 'grader' and says nothing of it"
    )


LADDER = "type: ladder, when_unsure: large, steps: [{tier: small, judge: sound, accept_at: 0.7}, "


def test_to_be_unsure_takes_an_estimator(folder):
    judged = CONFIG + "judges:\n  sound: {type: format}\n"
    sure = judged.replace("type: fixed, tier: small", f"{LADDER}{{tier: large}}]")
    assert wired(folder, sure).arms["up"].estimator.name == "learned"
    alone = sure.replace(", estimator: learned", "")
    with pytest.raises(ConfigError, match=r":7: policies\.up\.when_unsure: without an estimator"):
        wired(folder, alone)


def test_a_missing_artifact_is_refused_with_its_line(folder):
    other = CONFIG.replace("model.json", "none.json")
    with pytest.raises(ConfigError, match=r":5: estimators\.learned\.artifact: .*no such artifact"):
        wired(folder, other)


def test_an_artifact_that_needs_an_embedder_asks_for_one(tmp_path):
    artifact(tmp_path, recipe=PLAIN)
    with pytest.raises(ConfigError, match=r"estimators\.learned\.embedder: .*name the embedder"):
        wired(tmp_path)
