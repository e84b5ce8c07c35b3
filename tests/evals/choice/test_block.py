from pathlib import Path

import pytest
import yaml as pyyaml
from click.testing import CliRunner

from cascade.errors import ConfigError
from evals.choice.block import Names, block, put, yaml
from evals.choice.goals import ChoiceError
from evals.frontier.policies import replayed
from serving.commands.config import config
from tests.evals.choice.made import TIERS, made

REPLAYS = replayed(made(500))
NAMES = Names(policy="tuned", judge="sound", estimator="looks")
EXAMPLE = Path(__file__).parents[3] / "examples" / "utility.yaml"


def found(policy, knob):
    return block(REPLAYS[policy], knob, TIERS, NAMES)


@pytest.fixture
def configuration(tmp_path):
    path = tmp_path / "cascade.yaml"
    artifact = EXAMPLE.parents[1] / "judges" / "artifacts" / "sound.json"
    text = EXAMPLE.read_text(encoding="utf-8")
    path.write_text(text.replace("../judges/artifacts/sound.json", str(artifact)))
    return path


def checked(path):
    return CliRunner().invoke(config, ["check", "--config", str(path)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("policy", "knob"),
    [("utility", 0.00001), ("cascade", 0.7312), ("classifier", 25.0), ("always:large", 0.0)],
)
def test_what_is_written_can_work(configuration, policy, knob):
    put(configuration, "tuned", found(policy, knob))
    assert checked(configuration).exit_code == 0
    written = pyyaml.safe_load(configuration.read_text())["policies"]
    assert written["tuned"] == found(policy, knob)
    assert "cascade" in written


def test_the_utility_rule_names_the_judge_where_answers_were_judged():
    assert found("utility", 0.002) == {
        "type": "utility",
        "estimator": "looks",
        "tiers": [{"tier": "small", "judge": "sound"}, {"tier": "large"}],
        "quality_usd": 0.002,
    }


def test_the_classifier_is_the_utility_rule_without_judges():
    told = found("classifier", 500.0)
    assert told["quality_usd"] == pytest.approx(0.002)
    assert told["tiers"] == [{"tier": "small"}, {"tier": "large"}]


def test_the_cascade_is_a_ladder():
    steps = [{"tier": "small", "judge": "sound", "accept_at": 0.7}, {"tier": "large"}]
    assert found("cascade", 0.7) == {"type": "ladder", "steps": steps}


@pytest.mark.parametrize(("knob", "tier"), [(0.0, "small"), (float("inf"), "large")])
def test_a_threshold_that_accepts_all_or_nothing_is_the_tier_that_then_answers(knob, tier):
    assert found("cascade", knob) == {"type": "fixed", "tier": tier}


def test_what_the_service_cannot_run_is_refused():
    with pytest.raises(ChoiceError, match="no policy of the service decides as uplift does"):
        found("uplift", 0.1)
    with pytest.raises(ChoiceError, match="pays any price for quality"):
        found("classifier", -1.0)


def test_small_numbers_stay_numbers():
    text = "policies:\n" + yaml("tuned", found("utility", 3e-7))
    assert pyyaml.safe_load(text)["policies"]["tuned"]["quality_usd"] == 3e-7


def test_names_that_yaml_takes_for_something_else_are_quoted():
    text = yaml("tuned", {"type": "fixed", "tier": "70b: fast"})
    assert pyyaml.safe_load(text)["tuned"]["tier"] == "70b: fast"


def test_a_block_of_that_name_is_replaced_and_all_else_stays(configuration):
    before = configuration.read_text()
    put(configuration, "tuned", found("cascade", 0.7), ["tuned: once", "tuned: or twice"])
    put(configuration, "tuned", found("cascade", 0.8), ["tuned: again"])
    block_ = yaml("tuned", found("cascade", 0.8), ["tuned: again"])
    assert configuration.read_text().replace(block_, "") == before


def test_a_section_after_the_policies_stays_where_it_is(configuration):
    configuration.write_text(configuration.read_text() + "\naudit: {retention_days: 30}\n")
    put(configuration, "tuned", found("cascade", 0.7))
    assert pyyaml.safe_load(configuration.read_text())["audit"] == {"retention_days": 30}
    assert checked(configuration).exit_code == 0


def test_a_configuration_that_could_not_work_is_left_as_it_was(configuration):
    before = configuration.read_text()
    nobody = Names(policy="tuned", judge="nobody", estimator="looks")
    with pytest.raises(ConfigError, match=r"^with policy tuned in it: .*/cascade.yaml.*nobody"):
        put(configuration, "tuned", block(REPLAYS["cascade"], 0.7, TIERS, nobody))
    assert configuration.read_text() == before
    assert [path.name for path in configuration.parent.iterdir()] == ["cascade.yaml"]


def test_a_file_without_policies_is_refused(tmp_path):
    path = tmp_path / "cascade.yaml"
    path.write_text("policies: {plain: {type: fixed, tier: small}}\n")
    with pytest.raises(ChoiceError, match="no line `policies:`"):
        put(path, "tuned", found("cascade", 0.7))


def test_a_new_file_holds_the_block_alone(tmp_path):
    path = tmp_path / "tuned.yaml"
    put(path, "tuned", found("cascade", 0.7), ["tuned: on made rows"])
    assert path.read_text().startswith("policies:\n  # tuned: on made rows\n  tuned:\n")
