"""Estimators as a configuration names them."""

import pytest

from cascade.errors import ConfigError
from serving.config import ConfigFile
from serving.wiring import Wiring

TEXT = """
tiers:
  small: {backend: scripted, price: {input: 1, cache_read: 1, output: 1}}
  large: {backend: scripted, price: {input: 10, cache_read: 10, output: 10}}
estimators:
  asks: {type: llm, ESTIMATOR}
policies:
  p: {type: fixed, tier: small, estimator: asks}
"""
GOOD = "tier: small, tiers: {large: 0.9}, text: {turns: 3}"


def wired(tmp_path, estimator):
    path = tmp_path / "cascade.yaml"
    path.write_text(TEXT.replace("ESTIMATOR", estimator))
    file = ConfigFile(path)
    try:
        return Wiring(file.config, tmp_path).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def test_the_llm_estimator_gets_the_tier_that_it_names(tmp_path):
    snapshot = wired(tmp_path, GOOD)
    assert snapshot.arms["p"].estimator.asks == "small"


@pytest.mark.parametrize(
    ("estimator", "fault"),
    [
        ("tier: medium, tiers: {large: 0.9}", "6: estimators.asks.tier: there is no tier 'medium'"),
        ("tier: small, tiers: {huge: 0.9}", "6: estimators.asks.tiers.huge: there is no tier"),
        ("tier: small, tiers: {large: 2}", "6: estimators.asks.tiers.large: it is a probability"),
        ("tiers: {large: 0.9}", "6: estimators.asks: the key tier is missing"),
        (GOOD.replace("turns", "turn"), "6: estimators.asks.text.turn: unknown key"),
        (f"{GOOD}, served: {{}}", "6: estimators.asks.served: unknown key"),
        (f"{GOOD}, rubric: no/such.md", "6: estimators.asks.rubric: the rubric 'no/such.md'"),
    ],
)
def test_what_cannot_work_is_refused_with_its_line(tmp_path, estimator, fault):
    with pytest.raises(ConfigError, match=r"cascade\.yaml") as caught:
        wired(tmp_path, estimator)
    assert fault in caught.value.message


def test_another_text_of_the_question_is_another_version(tmp_path):
    ours = tmp_path / "ours.md"
    ours.write_text("labels: no yes\nask: Is it easy?\n\nSay yes if it is.\n")
    before = wired(tmp_path, f"{GOOD}, rubric: ours.md").version
    assert wired(tmp_path, f"{GOOD}, rubric: ours.md").version == before
    ours.write_text("labels: no yes\nask: Is it easy?\n\nSay yes if it is easy.\n")
    assert wired(tmp_path, f"{GOOD}, rubric: ours.md").version != before
