import re
from dataclasses import replace

import pytest

from cascade.errors import RequestError
from cascade.snapshot import Snapshot
from serving.overrides.apply import applied, check, fitting, ground_of
from serving.overrides.store import Override
from tests.engines import request
from tests.services import snapshot


def state(**values):
    """By subject, written with __ for a colon, what is in force; versions count up."""
    subjects = [subject.replace("__", ":") for subject in values]
    return {
        subject: Override(
            version=version,
            subject=subject,
            value=value,
            until=None,
            who="ann",
            why="a look",
            created_at=0.0,
        )
        for version, (subject, value) in enumerate(zip(subjects, values.values(), strict=True), 1)
    }


def overridden(file, held):
    fit = fitting(ground_of(file), held)
    return applied(file, fit), list(fit.doubts)


def under(**values):
    return overridden(snapshot(), state(**values))


def test_without_overrides_the_file_is_as_it_is():
    file = snapshot()
    assert overridden(file, {}) == (file, [])


def test_an_experiment_comes_under_its_overrides_terms_and_version():
    changed, doubts = under(experiment__auto={"weights": {"always-small": 0}, "ramp": 0.5})
    trial = changed.experiments["auto"]
    assert doubts == []
    assert trial.ramp == 0.5
    assert [(a.name, a.weight, a.version) for a in trial.arms] == [
        ("cascade", 1, 1),
        ("always-small", 0, 1),
    ]
    assert changed.version == snapshot().version


@pytest.mark.parametrize("asked", ["auto", "cascade", "small"])
def test_everything_goes_to_the_tier_that_is_pinned(asked):
    arm = under(pin={"tier": "large"})[0].arm(asked, "u")
    assert [step.tier for step in arm.policy.steps] == ["large"]
    assert (arm.policy.name, arm.experiment, arm.version) == ("pin:large", None, 1)


def test_a_drained_tier_is_ruled_out_with_the_reason_and_so_are_the_rules_own():
    file = replace(snapshot(), ruled_out=lambda _: {"small": "is ruled out: no"})
    changed, doubts = overridden(file, state(drain__large={}))
    assert doubts == []
    assert changed.ruled_out(request()) == {
        "small": "is ruled out: no",
        "large": "is drained: a look",
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"experiment__gone": {"ramp": 1}}, "override 1 of experiment:gone.*no experiment 'gone'"),
        ({"experiment__auto": {"weights": {"gone": 1}}}, "experiment:auto.*no arm 'gone'"),
        ({"pin": {"tier": "gone"}}, "of pin .*no tier 'gone'"),
        ({"pin": {}}, "of pin .*no tier None"),
        ({"drain__gone": {}}, "of drain:gone .*no tier 'gone'"),
    ],
)
def test_what_does_not_fit_the_file_any_more_is_left_out_and_named(values, said):
    file = snapshot()
    changed, doubts = overridden(file, state(**values))
    assert len(doubts) == 1
    assert re.search(said, doubts[0])
    assert changed.experiments == file.experiments
    assert changed.pinned is None


def test_an_arm_that_is_gone_lets_nobody_into_what_was_stopped():
    changed, doubts = under(experiment__auto={"enabled": False, "weights": {"gone": 1}})
    trial = changed.experiments["auto"]
    assert (trial.enabled, trial.elsewhere.version) == (False, 1)
    assert len(doubts) == 1
    assert doubts[0].startswith(
        "weights.gone of override 1 of experiment:auto is not in force: there is no arm 'gone'"
    )


def test_a_pin_beats_a_drain_of_its_tier():
    changed, doubts = under(pin={"tier": "large"}, drain__large={})
    assert changed.ruled_out(request()) == {}
    assert "pinned to large" in doubts[0]


def test_when_no_tier_would_be_left_none_is_drained():
    changed, doubts = under(drain__small={}, drain__large={})
    assert changed.ruled_out(request()) == {}
    assert ["no tier would be left" in doubt for doubt in doubts] == [True, True]


@pytest.mark.parametrize(
    ("subject", "value", "held", "said"),
    [
        ("pin", {"tier": "gone"}, {}, "no tier 'gone'; there are: small, large"),
        ("pin", {"tier": "small"}, {"drain__small": {}}, "small is drained"),
        ("drain:gone", {}, {}, "no tier 'gone'"),
        ("drain:small", {}, {"pin": {"tier": "small"}}, "pinned to small"),
        ("drain:small", {}, {"drain__large": {}}, "no tier would be left"),
        ("experiment:gone", {}, {}, "no experiment 'gone'; there are: auto"),
        ("experiment:auto", {"ramp": 2}, {}, "ramp: .*from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_written(subject, value, held, said):
    with pytest.raises(RequestError, match=said):
        check(ground_of(snapshot()), subject, value, state(**held))


def test_a_tier_can_be_drained_while_another_is_left():
    check(ground_of(snapshot()), "drain:small", {}, state(drain__small={}))


def covering() -> Snapshot:
    file = snapshot()
    trial = replace(file.experiments["auto"], covers=("always-small",), ramp=0.5)
    return replace(file, experiments={"auto": trial})


def test_who_asks_for_a_covered_policy_may_be_in_and_otherwise_gets_that_policy():
    file = covering()
    arms = [file.arm("always-small", f"u{i}") for i in range(200)]
    outside = [arm for arm in arms if arm.experiment is None]
    assert 60 < len(outside) < 140
    assert {arm.policy.name for arm in outside} == {"always-small"}
    assert {arm.name for arm in arms if arm.experiment == "auto"} == {"cascade", "always-small"}


def test_a_policy_that_no_experiment_covers_is_what_it_says():
    assert covering().arm("cascade", "u").experiment is None
