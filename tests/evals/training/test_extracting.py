import json

import pytest

from cascade.errors import ConfigError
from classifiers.text import DEFAULT, Extraction
from evals.training.extracting import of_log, stated
from evals.training.fit import Recipe
from evals.training.rows import TrainingError
from serving.config import ConfigFile
from tests.learning import artifact

CONFIG = """\
tiers:
  small: {backend: openai_http, url: http://127.0.0.1:1/v1, model: tiny-1}
  large: {backend: openai_http, url: http://127.0.0.1:2/v1, model: huge-1}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
"""
NARROW = Extraction(turns=1, markers=("note",))


def configured(folder, *artifacts):
    lines = [f"  e{at}: {{type: learned, artifact: {name}}}" for at, name in enumerate(artifacts)]
    path = folder / "cascade.yaml"
    path.write_text(CONFIG + "\n".join(lines))
    return ConfigFile(path)


def made(folder, name, extraction):
    return artifact(
        folder,
        recipe=Recipe(head="linear"),
        embedded=False,
        name=name,
        extraction=extraction,
    )


def test_numbers_are_numbers_and_lists_are_given_one_by_one():
    found = stated(["turns=4", "markers=note", "ask_tokens=80", "markers=log", "wrappers="])
    assert found == Extraction(turns=4, ask_tokens=80, markers=["note", "log"], wrappers=[])
    assert stated([]) == DEFAULT


@pytest.mark.parametrize(
    ("pairs", "complaint"),
    [
        (["turns"], "--text 'turns' is not NAME=VALUE"),
        (["=4"], "is not NAME=VALUE"),
        (["turn=4"], "--text.turn: unknown key: it takes ask_tokens"),
        (["turns=four"], "--text.turns: it is a whole number"),
        (["turns=-1"], "--text.turns: it is a whole number"),
        (["turns=1", "turns=2"], "--text turns is given twice"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_by_its_name(pairs, complaint):
    with pytest.raises(TrainingError, match=complaint):
        stated(pairs)


def test_what_is_stated_is_the_same_after_it_was_written_down():
    settings = json.loads(json.dumps(NARROW.settings()))
    assert Extraction.of(settings, "extraction").settings() == NARROW.settings()


def test_a_log_was_read_as_the_artifact_of_its_configuration_says(tmp_path):
    made(tmp_path, "narrow.json", NARROW)
    assert of_log(configured(tmp_path, "narrow.json")).settings() == NARROW.settings()
    assert of_log(configured(tmp_path, "narrow.json", "narrow.json")).turns == 1


def test_a_configuration_without_an_artifact_says_nothing_else_than_the_defaults(tmp_path):
    assert of_log(configured(tmp_path)) == DEFAULT


def test_estimators_that_look_at_different_parts_are_refused_by_name(tmp_path):
    made(tmp_path, "narrow.json", NARROW)
    made(tmp_path, "usual.json", DEFAULT)
    with pytest.raises(TrainingError, match="the estimators e0 and e1 look at different parts"):
        of_log(configured(tmp_path, "narrow.json", "usual.json"))


def test_an_artifact_that_is_gone_is_refused_with_its_line(tmp_path):
    with pytest.raises(ConfigError, match=r":6: estimators\.e0\.artifact: .*no such artifact"):
        of_log(configured(tmp_path, "gone.json"))
