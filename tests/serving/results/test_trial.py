import pytest
import yaml

from serving.config import Config
from serving.results import trial_of

FILE = """
tiers: {small: {backend: scripted}, large: {backend: scripted}}
judges:
  sound: {type: panel, members: [format, sure]}
  format: {type: format}
  sure: {type: logprob}
  wrapped: {type: agreement, of: spare}
  spare: {type: format}
  expert: {type: format}
policies:
  always-large: {type: fixed, tier: large}
  default: {type: ladder, steps: [{tier: small, judge: sound, accept_at: 0.7}, {tier: large}]}
  other: {type: utility, judge: wrapped}
experiments:
  auto:
    unit: user
    margin: 0.02
    guardrails: {quality: -0.02, cost: 0.5}
    arms: {cascade: {policy: default, weight: 10}, control: {policy: always-large, weight: 90}}
  plain:
    arms: {first: {policy: always-large}, second: {policy: default}}
  third:
    arms: {first: {policy: always-large}, second: {policy: other}}
"""


@pytest.fixture
def config():
    return Config.model_validate(yaml.safe_load(FILE))


def test_an_experiment_comes_as_the_file_has_it(config):
    trial = trial_of("auto", config.experiments["auto"], config)
    assert (trial.name, trial.unit, trial.margin) == ("auto", "user", 0.02)
    assert trial.weights == {"cascade": 10, "control": 90}
    assert trial.guardrails == {"quality": -0.02, "cost": 0.5}


def test_the_control_is_what_is_called_so_or_comes_first(config):
    assert trial_of("auto", config.experiments["auto"]).control == "control"
    assert trial_of("plain", config.experiments["plain"]).control == "first"


def test_the_judges_of_an_arms_policy_act_and_so_do_those_that_they_ask(config):
    acting = trial_of("auto", config.experiments["auto"], config).acting
    assert acting == {"sound", "format", "sure"}
    assert trial_of("third", config.experiments["third"], config).acting == {"wrapped", "spare"}
    assert trial_of("auto", config.experiments["auto"]).acting == frozenset()


@pytest.mark.parametrize(
    "wrong",
    [
        {"guardrails": {"quality": 0.02}},
        {"guardrails": {"cost": -0.5}},
        {"guardrails": {"error_rate": 2}},
        {"guardrails": {"latency": 0.5}},
        {"margin": -0.1},
    ],
)
def test_bounds_that_cannot_be_are_refused(wrong):
    data = yaml.safe_load(FILE)
    data["experiments"]["auto"] |= wrong
    with pytest.raises(ValueError, match=r"guardrails|margin"):
        Config.model_validate(data)
