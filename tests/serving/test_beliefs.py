"""What a policy is told to believe in a configuration, and what cannot work of it."""

import json
import re

import pytest

from cascade.errors import ConfigError
from cascade.experiments import UNFITTED
from serving.config import ConfigFile
from serving.identities import estimator_identity, judge_identity
from serving.wiring import Wiring
from tests.cascade.posterior.made import content

GOOD = """\
tiers:
  small: {backend: scripted, price: {input: 1, cache_read: 0.1, output: 2}}
  large: {backend: scripted, price: {input: 10, cache_read: 1, output: 20}}
  spare:
    backend: scripted
estimators:
  looks: {type: heuristic, tiers: {small: [0.9, 0.3], large: [0.97, 0.6]}}
judges:
  sound: {type: format}
policies:
  default:
    type: utility
    estimator: looks
    tiers:
      - {tier: small, judge: sound}
      - {tier: large}
    quality_usd: 0.004
    prior: {small: 0.6, large: 0.8}
experiments:
  auto: {arms: {one: {policy: default, weight: 3}}}
"""


def wired(folder, text):
    path = folder / "cascade.yaml"
    path.write_text(text)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, folder).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def fitted(folder, **manifest):
    """A posterior that was fitted for GOOD, in posterior.json; and GOOD naming it."""
    (folder / "cascade.yaml").write_text(GOOD)
    config = ConfigFile(folder / "cascade.yaml").config
    snapshot = Wiring(config, folder).snapshot()
    made = content()
    found = judge_identity(config, folder, snapshot.judges, "sound")
    made["manifest"]["judges"]["small"]["digest"] = found.digest
    found = estimator_identity(config, "looks", snapshot.arms["default"].estimator)
    made["manifest"]["estimator"]["digest"] = found.digest
    (folder / "posterior.json").write_text(json.dumps(made | manifest))
    return GOOD.replace("    prior:", "    posterior: posterior.json\n    prior:")


def test_a_policy_has_its_prior_in_every_arm_that_follows_it(tmp_path):
    snapshot = wired(tmp_path, GOOD)
    (arm,) = snapshot.experiments["auto"].arms
    assert arm.prior == snapshot.arms["default"].prior == {"small": 0.6, "large": 0.8}
    assert (arm.posterior, arm.estimator.name) == (UNFITTED, "looks")
    assert (arm.name, arm.weight, arm.experiment) == ("one", 3.0, "auto")
    assert snapshot.warnings == ()


def test_a_policy_has_its_fitted_posterior_in_every_arm_and_its_doubts_are_warnings(tmp_path):
    snapshot = wired(tmp_path, fitted(tmp_path))
    (arm,) = snapshot.experiments["auto"].arms
    assert list(arm.posterior.manifest.models) == ["small", "large"]
    assert arm.posterior == snapshot.arms["default"].posterior
    warning, *_ = snapshot.warnings
    assert warning.startswith("policy default: of its posterior: it was fitted on answers of tiny")


def test_a_prior_that_the_posterior_overrides_is_warned_of(tmp_path):
    text = fitted(tmp_path)
    *_, warning = wired(tmp_path, text).warnings
    assert warning == (
        "policy default: it has both a posterior and a prior; where there is no estimate the "
        "posterior's rates are believed of small and large, not policies.default.prior: leave one "
        "of them out"
    )
    alone = wired(tmp_path, text.replace("    prior: {small: 0.6, large: 0.8}\n", "")).warnings
    assert not any("both" in each for each in alone)


def test_another_fit_is_another_version_of_the_configuration(tmp_path):
    text = fitted(tmp_path)
    without, one = wired(tmp_path, GOOD).version, wired(tmp_path, text).version
    path = tmp_path / "posterior.json"
    made = json.loads(path.read_text())
    made["manifest"]["rates"]["small"] = 0.123
    path.write_text(json.dumps(made))
    assert len({without, one, wired(tmp_path, text).version}) == 3
    assert wired(tmp_path, GOOD.replace("small: 0.6", "small: 0.7")).version != without


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("{small: 0.6,", "{small: 1.6,", 18, "less than or equal to 1"),
        ("{small: 0.6,", "{small: -0.1,", 18, "greater than or equal to 0"),
        ("{small: 0.6,", "{tiny: 0.6,", 18, "no tier 'tiny'; there are: small"),
        ("- {tier: large}", "- {tier: spare}", 4, "no price, and policy default weighs dollars"),
        ("quality_usd: 0.004", "quality_usd: 0", 17, "above 0"),
        ("quality_usd: 0.004", "quality: 0.004", 17, "unknown key"),
        ("    quality_usd: 0.004\n", "", 11, "quality_usd is missing"),
        ("- {tier: large}", "- {tier: large, at: 1}", 16, "unknown key"),
        ("- {tier: large}", "- {tier: huge}", 11, "no tier 'huge'"),
        ("judge: sound", "judge: gone", 11, "no judge 'gone'"),
        ("prior:", "consistency: always\n    prior:", 18, "turn"),
        ("prior:", "when_unsure: spare\n    prior:", 18, "none of its tiers"),
        ("prior:", "posterior: gone.json\n    prior:", 18, "gone.json: no such artifact"),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(tmp_path, old, new, line, fault):
    assert old in GOOD
    with pytest.raises(ConfigError, match=rf"(?s)cascade\.yaml:{line}: .*{fault}"):
        wired(tmp_path, GOOD.replace(old, new))


def test_a_posterior_of_another_judge_is_refused_with_its_line(tmp_path):
    text = fitted(tmp_path).replace("sound", "sounder")
    with pytest.raises(ConfigError, match=r"cascade\.yaml:18: .*of sound, and not of sounder"):
        wired(tmp_path, text)


UNKNOWING = re.sub(r"    (estimator|prior): .*\n", "", GOOD)


def test_a_policy_that_knows_nothing_of_its_tiers_is_warned_of(tmp_path):
    (warning,) = wired(tmp_path, UNKNOWING).warnings
    assert warning == (
        "policy default: before any call it believes that small and large are each right with "
        "0.5, whatever is asked; name an estimator or a posterior, or state a prior"
    )
    half = UNKNOWING + "\n"
    half = half.replace("    quality_usd", "    prior: {small: 0.6}\n    quality_usd")
    (warning,) = wired(tmp_path, half).warnings
    assert "it believes that large is right with 0.5" in warning
    whole = half.replace("{small: 0.6}", "{small: 0.6, large: 0.8}")
    assert wired(tmp_path, whole).warnings == ()


def test_a_judge_that_asks_a_tier_without_a_price_cannot_be_weighed(tmp_path):
    asking = "{type: panel, members: [reads]}\n  reads: {type: llm, tier: spare}"
    text = GOOD.replace("{type: format}", asking)
    with pytest.raises(ConfigError, match=r"cascade\.yaml:4: .*judge sound asks it, and policy"):
        wired(tmp_path, text)
    unweighed = re.sub(r"(?s)    type: utility.*\nexperiments.*", "    type: ladder\n", text)
    unweighed += "    steps: [{tier: small, judge: sound, accept_at: 0.5}, {tier: large}]\n"
    assert wired(tmp_path, unweighed).tiers["spare"].prices is None


def test_a_policy_that_does_not_weigh_dollars_needs_no_price_and_no_belief(tmp_path):
    text = GOOD + "  # the arms above stand\n"
    text = text.replace("policies:\n", "policies:\n  plain: {type: fixed, tier: spare}\n")
    assert wired(tmp_path, text).warnings == ()
