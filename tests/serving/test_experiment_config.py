"""What the configuration says of experiments, and what it may not say."""

import pytest

from cascade.errors import ConfigError
from cascade.terms import instant
from tests.serving.test_config import GOOD, wired

HEAD = GOOD[: GOOD.index("experiments:")]
NOW = instant("2027-01-01T00:00:00Z")


def built(tmp_path, text):
    return wired(tmp_path, HEAD + text)


def test_an_experiment_says_who_is_in_and_how_the_others_are_answered(tmp_path):
    snapshot = built(
        tmp_path,
        """\
layers:
  routing: {salt: s, holdout: {share: 0.05, policy: always-large}}
experiments:
  auto:
    unit: header:X-Team
    layer: routing
    share: 2
    covers: [always-large]
    outside: always-large
    ramp: 0.25
    start: 2027-01-01T00:00:00Z
    end: 2027-02-01T09:00:00+09:00
    arms: {a: {policy: cascade}, b: {policy: always-large, estimator: looks}}
  other: {unit: header:x-team, layer: routing, enabled: false, arms: {a: {policy: cascade}}}
""",
    )
    auto, other = snapshot.experiments["auto"], snapshot.experiments["other"]
    assert (auto.unit, other.unit) == ("header:x-team", "header:x-team")
    assert (auto.ramp, auto.start, auto.covers) == (0.25, NOW, ("always-large",))
    assert auto.end == NOW + 31 * 86400
    assert auto.elsewhere.policy.name == "always-large"
    assert auto.layer is other.layer
    assert (auto.layer.salt, dict(auto.layer.shares)) == ("s", {"auto": 2, "other": 1})
    held = auto.layer.holdout
    assert (held.experiment, held.name, held.policy.name) == ("routing", "holdout", "always-large")
    assert auto.layer.held_out == 0.05
    assert [arm.estimator and arm.estimator.name for arm in auto.arms] == ["looks", "looks"]
    assert snapshot.arms["always-large"].estimator is None
    assert not other.enabled


ARMS = "arms: {a: {policy: cascade}, b: {policy: always-large}}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unit: planet, " + ARMS, "auto.unit: "),
        ("unit: 'header:', " + ARMS, "auto.unit: "),
        ("unit: header:Authorization, " + ARMS, "auto.unit: .*secret"),
        ("unit: header:x-goog-api-key, " + ARMS, "auto.unit: .*secret"),
        ("unit: header:X-Auth-Token, " + ARMS, "auto.unit: .*secret"),
        ("unit: header:x-cascade-team, " + ARMS, "auto.unit: .*refused"),
        ("ramp: 1.5, " + ARMS, "auto.ramp: "),
        ("start: 2027-01-01T00:00:00, " + ARMS, "auto.start: .*timezone"),
        ("start: 2027-01-02T00:00:00Z, end: 2027-01-01T00:00:00Z, " + ARMS, "end must be after"),
        ("arms: {}", "auto.arms: "),
        ("arms: {a: {policy: cascade, weight: 0}}", "at least one arm needs a weight above 0"),
        ("arms: {a: {policy: cascade, weight: .inf}}", "auto.arms.a.weight"),
        ("arms: {a: {policy: gone}}", "arms.a.policy: there is no policy 'gone'"),
        ("arms: {a: {policy: cascade, estimator: gone}}", "no estimator 'gone'"),
        ("outside: gone, " + ARMS, "auto.outside: there is no policy 'gone'"),
        ("covers: [large], " + ARMS, "auto.covers.0: there is no policy 'large'"),
        ("layer: gone, " + ARMS, "auto.layer: there is no layer 'gone'"),
        ("share: 0, " + ARMS, "auto.share: "),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said) as refused:
        built(tmp_path, f"experiments:\n  auto: {{{text}}}\n")
    assert f"cascade.yaml:{HEAD.count(chr(10)) + 2}:" in refused.value.message


@pytest.mark.parametrize(
    ("layer", "x", "y", "said"),
    [
        (
            "l: {}",
            "layer: l",
            "layer: l, unit: tenant",
            "layers.l: .*one kind of unit, and x has session, y has tenant",
        ),
        ("x: {}", "ramp: 1", "ramp: 1", "layers.x: an experiment has the name"),
        (
            "l: {holdout: {share: 0.1, policy: gone}}",
            "layer: l",
            "layer: l",
            "layers.l.holdout.policy: there is no policy 'gone'",
        ),
        (
            "l: {}",
            "layer: l, covers: [cascade]",
            "covers: [cascade]",
            "experiments.y.covers.0: x covers cascade as well, so both must be in one layer",
        ),
    ],
)
def test_experiments_that_cannot_be_together_are_refused(tmp_path, layer, x, y, said):
    with pytest.raises(ConfigError, match=said):
        built(tmp_path, two(layer, x, y))


def two(layer, x, y):
    experiments = f"experiments:\n  x: {{{x}, {ARMS}}}\n  y: {{{y}, {ARMS}}}\n"
    return f"layers: {{{layer}}}\n{experiments}"


def test_two_of_one_layer_may_cover_the_same_policy(tmp_path):
    both = "layer: l, covers: [cascade]"
    snapshot = built(tmp_path, two("l: {}", both, both))
    arms = [snapshot.arm("cascade", f"u{i}", NOW) for i in range(100)]
    assert {arm.experiment for arm in arms} == {"x", "y"}


def test_an_experiment_changes_the_configurations_version_and_an_override_does_not(tmp_path):
    one = built(tmp_path, f"experiments:\n  x: {{{ARMS}}}\n")
    two = built(tmp_path, f"experiments:\n  x: {{ramp: 0.5, {ARMS}}}\n")
    assert one.version != two.version
