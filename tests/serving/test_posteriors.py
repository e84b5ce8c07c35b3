import json

import pytest

from cascade.errors import ConfigError
from cascade.policies.ladder import LadderPolicy
from serving.commands.options import load, wire
from serving.identities import estimator_identity, judge_identity
from serving.posteriors import Surroundings, posterior_for
from tests.cascade.posterior.made import content

CONFIG = """
tiers:
  small: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}
  large: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
judges:
  sound: {type: format}
  other: {type: working}
policies:
  p: {type: fixed, tier: small, estimator: looks}
"""


@pytest.fixture
def among(tmp_path):
    (tmp_path / "cascade.yaml").write_text(CONFIG)
    file = load(tmp_path / "cascade.yaml")
    snapshot = wire(file)
    found = Surroundings(file.config, tmp_path, snapshot.judges)
    made = content()
    made["manifest"]["judges"]["small"]["digest"] = judge_identity(*found, "sound").digest
    estimator = snapshot.arms["p"].estimator
    identity = estimator_identity(file.config, "looks", estimator)
    made["manifest"]["estimator"]["digest"] = identity.digest
    (tmp_path / "p.json").write_text(json.dumps(made))
    return found, ("looks", estimator)


def policy(judge="sound"):
    steps = [{"tier": "small", "judge": judge, "accept_at": 0.5}, {"tier": "large"}]
    return LadderPolicy(name="p", steps=steps)


def test_it_is_loaded_for_the_policy_it_was_fitted_for(among):
    surroundings, estimator = among
    model, warnings = posterior_for("p.json", policy(), estimator, surroundings)
    assert list(model.manifest.models) == ["small", "large"]
    (warning,) = warnings
    assert warning.startswith("it was fitted on answers of tiny-1, and tier small serves")


def test_another_judge_another_estimator_and_changed_options_are_refused(among):
    surroundings, estimator = among
    with pytest.raises(ConfigError, match="on small of sound, and not of other"):
        posterior_for("p.json", policy("other"), estimator, surroundings)
    with pytest.raises(ConfigError, match="estimates of looks, and not of nobody"):
        posterior_for("p.json", policy(), (None, None), surroundings)
    (surroundings.base / "cascade.yaml").write_text(CONFIG.replace("0.3", "0.2"))
    changed = surroundings._replace(config=load(surroundings.base / "cascade.yaml").config)
    with pytest.raises(ConfigError, match="estimates of another looks: its options"):
        posterior_for("p.json", policy(), estimator, changed)
    with pytest.raises(ConfigError, match=r"gone\.json: no such artifact"):
        posterior_for("gone.json", policy(), estimator, surroundings)
