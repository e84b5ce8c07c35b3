import json

import pytest

from serving.commands.options import load, wire
from serving.identities import estimator_identity, judge_identity

CONFIG = """
tiers:
  small:
    backend: scripted
    capabilities: [logprobs]
    price: {{input: 1, cache_read: 1, output: 1}}
estimators:
  looks: {{type: heuristic, tiers: {{small: [0.9, {hard}]}}}}
judges:
  well_formed: {{type: format, short_limit_tokens: {short}}}
  confident: {{type: logprob, calibration: map.json}}
  sound: {{type: panel, members: [well_formed, confident], strict: {strict}}}
policies:
  p: {{type: fixed, tier: small, estimator: looks}}
"""
MAP = {"kind": "monotone_map", "x": [0.0, 1.0], "y": [0.1, 0.9]}


@pytest.fixture
def identities(tmp_path):
    """Digests of the panel and of the estimator of a configuration, with these values in it."""

    def made(hard=0.3, short=16, strict="false", upper=0.9):
        path = tmp_path / "cascade.yaml"
        path.write_text(CONFIG.format(hard=hard, short=short, strict=strict))
        (tmp_path / "map.json").write_text(json.dumps({**MAP, "y": [0.1, upper]}))
        file = load(path)
        snapshot = wire(file)
        judge = judge_identity(file.config, tmp_path, snapshot.judges, "sound")
        estimator = estimator_identity(file.config, "looks", snapshot.arms["p"].estimator)
        return judge, estimator

    return made


def test_the_same_configuration_has_the_same_identities(identities):
    judge, estimator = identities()
    assert (judge.name, estimator.name) == ("sound", "looks")
    assert identities() == (judge, estimator)


def test_what_changes_a_judges_word_changes_its_identity_alone(identities):
    judge, estimator = identities()
    for changed in ({"short": 8}, {"upper": 0.8}):
        other, same = identities(**changed)
        assert other.digest != judge.digest
        assert same == estimator


def test_what_changes_an_estimate_changes_the_estimators_identity_alone(identities):
    judge, estimator = identities()
    same, other = identities(hard=0.2)
    assert same == judge
    assert other.digest != estimator.digest


def test_how_strict_a_judge_is_does_not_change_what_it_says(identities):
    assert identities(strict="true") == identities()


def test_where_there_is_no_estimator_nobody_is_named(identities):
    del identities
    assert estimator_identity(None, None, None).name == ""


@pytest.fixture
def prices(tmp_path):
    """The version of a tier's prices."""

    def made(price, name="small"):
        path = tmp_path / "cascade.yaml"
        path.write_text(
            f"tiers: {{{name}: {{backend: scripted{price}}}}}\n"
            f"policies: {{p: {{type: fixed, tier: {name}}}}}\n"
        )
        return wire(load(path)).prices_version

    return made


def test_prices_are_the_same_for_the_same_rates_and_others_for_any_that_differs(prices):
    rates = ", price: {input: 1, cache_read: 0.1, output: 2}"
    assert prices(rates) == prices(rates)
    others = [
        prices(", price: {input: 1, cache_read: 0.2, output: 2}"),
        prices(", price: {input: 1, cache_read: 0.1, output: 2, cache_write: {5m: 3}}"),
        prices(""),
        prices(rates, name="large"),
    ]
    assert len({prices(rates), *others}) == 5
