import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.experiments import Arm, Experiment, Layer, place
from cascade.policies.fixed import FixedPolicy

UNITS = [f"unit-{i}" for i in range(20_000)]
POLICY = FixedPolicy(name="p", tier="small")
NOW = 1_800_000_000.0


def experiment(salt="", **weights):
    return Experiment(
        name="auto",
        salt=salt,
        arms=[Arm(name=name, policy=POLICY, weight=weight) for name, weight in weights.items()],
    )


def assigned(trial):
    return {unit: trial.assign(unit).name for unit in UNITS}


def test_shares_follow_the_weights():
    counts = Counter(assigned(experiment(a=1, b=3)).values())
    assert abs(counts["b"] / len(UNITS) - 0.75) < 0.015


def test_assignment_is_a_pure_function_of_the_unit():
    assert assigned(experiment(a=1, b=1)) == assigned(experiment(a=1, b=1))
    assert experiment(a=50, b=50).assign("someone").name == "a"


def test_raising_a_weight_moves_units_only_into_that_arm():
    before, after = assigned(experiment(a=90, b=10)), assigned(experiment(a=90, b=30))
    moved = {(before[u], after[u]) for u in UNITS if before[u] != after[u]}
    assert moved == {("a", "b")}


def test_removing_an_arm_moves_only_its_units():
    before = assigned(experiment(a=1, b=1, c=1))
    after = assigned(experiment(a=1, b=1))
    assert all(after[u] == before[u] for u in UNITS if before[u] != "c")


def test_an_arm_of_weight_zero_gets_nobody():
    assert set(assigned(experiment(a=1, b=0)).values()) == {"a"}


def test_another_salt_is_another_assignment():
    one, two = assigned(experiment(a=1, b=1)), assigned(experiment(a=1, b=1, salt="x"))
    same = sum(one[u] == two[u] for u in UNITS) / len(UNITS)
    assert abs(same - 0.5) < 0.02


WEIGHTS = st.dictionaries(st.sampled_from("abcde"), st.floats(0.1, 100), min_size=2, max_size=5)


@settings(deadline=None)
@given(WEIGHTS, st.data())
def test_a_weight_that_goes_from_10_to_20_percent_moves_nobody_who_was_in_the_arm_out(
    weights, data
):
    arm = data.draw(st.sampled_from(sorted(weights)))
    rest = sum(weights.values()) - weights[arm]
    shares = {name: weight / rest * 90 for name, weight in weights.items()} | {arm: 10.0}
    more = {name: share / 90 * 80 for name, share in shares.items()} | {arm: 20.0}
    before, after = experiment(**shares), experiment(**more)
    inside = [unit for unit in UNITS[:500] if before.assign(unit).name == arm]
    assert {after.assign(unit).name for unit in inside} <= {arm}


@settings(deadline=None)
@given(WEIGHTS, st.data())
def test_removing_any_arm_moves_only_its_units(weights, data):
    gone = data.draw(st.sampled_from(sorted(weights)))
    before = experiment(**weights)
    after = experiment(**{name: weight for name, weight in weights.items() if name != gone})
    for unit in UNITS[:300]:
        was = before.assign(unit).name
        assert was == gone or after.assign(unit).name == was


@given(st.text(), st.text())
def test_any_unit_and_any_salt_have_an_arm(unit, salt):
    assert experiment(salt=salt, a=1, b=1).assign(unit).name in {"a", "b"}


def test_assignment_is_the_same_in_another_process():
    program = (
        "from tests.cascade.test_experiments import UNITS, experiment, layered\n"
        "trial = experiment(a=30, b=50, c=20)\n"
        "one = layered()['one']\n"
        "told = [trial.assign(u).name + str(one.admits(u, 0)) for u in UNITS[:2000]]\n"
        "print(','.join(told))"
    )
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": "."}
    there = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    trial, one = experiment(a=30, b=50, c=20), layered()["one"]
    here = [trial.assign(u).name + str(one.admits(u, 0)) for u in UNITS[:2000]]
    assert there.stdout.strip().split(",") == here


def inside(trial, now=NOW):
    return {unit for unit in UNITS if trial.admits(unit, now)}


def test_a_ramp_lets_its_share_in_and_raising_it_keeps_who_is_in():
    trial = experiment(a=1, b=1)
    before = inside(replace(trial, ramp=0.1))
    after = inside(replace(trial, ramp=0.3))
    assert abs(len(before) / len(UNITS) - 0.1) < 0.01
    assert abs(len(after) / len(UNITS) - 0.3) < 0.015
    assert before < after
    assert inside(replace(trial, ramp=0)) == set()
    assert inside(trial) == set(UNITS)


def test_who_a_ramp_lets_in_is_split_by_the_weights_and_stays_in_its_arm():
    trial = replace(experiment(a=1, b=1), ramp=0.2)
    counts = Counter(trial.assign(unit).name for unit in inside(trial))
    assert abs(counts["a"] / counts.total() - 0.5) < 0.03
    assert place([trial], min(inside(trial)), NOW) == trial.assign(min(inside(trial)))


def test_outside_of_the_ramp_the_first_arms_policy_answers_and_no_arm_is_recorded():
    trial = replace(experiment(a=1, b=1), ramp=0)
    arm = place([trial], "someone", NOW)
    assert (arm.policy, arm.name, arm.experiment) == (POLICY, None, None)


def test_outside_a_stated_policy_answers():
    other = Arm(name=None, policy=FixedPolicy(name="other", tier="large"))
    trial = replace(experiment(a=1, b=1), enabled=False, outside=other)
    assert place([trial], "someone", NOW).policy.name == "other"


@pytest.mark.parametrize(
    ("times", "runs"),
    [
        ({"start": NOW + 1}, False),
        ({"start": NOW}, True),
        ({"end": NOW}, False),
        ({"end": NOW + 1}, True),
        ({"start": NOW - 1, "end": NOW + 1}, True),
        ({"enabled": False}, False),
    ],
)
def test_nobody_is_in_before_the_start_from_the_end_on_or_when_it_is_off(times, runs):
    assert replace(experiment(a=1), **times).admits("someone", NOW) is runs


def layered(**options):
    """Three experiments of one layer."""
    layer = Layer(name="all", shares={"one": 1, "two": 1, "three": 2}, **options)
    return {name: replace(experiment(a=1, b=1), name=name, layer=layer) for name in layer.shares}


def test_experiments_of_a_layer_share_no_unit_and_split_it_by_their_shares():
    trials = layered()
    sets = {name: inside(trial) for name, trial in trials.items()}
    assert sum(map(len, sets.values())) == len(UNITS) == len(set().union(*sets.values()))
    assert abs(len(sets["three"]) / len(UNITS) - 0.5) < 0.015


def test_a_new_experiment_of_a_layer_takes_units_and_moves_none_between_the_others():
    before, fewer = layered(), Layer(name="all", shares={"one": 1, "two": 1})
    for name in ("one", "two"):
        was = inside(replace(before[name], layer=fewer))
        assert inside(before[name]) < was


def test_an_experiment_that_is_off_leaves_its_units_to_none_of_its_layer():
    trials = layered()
    others = {name: inside(trial) for name, trial in trials.items() if name != "one"}
    off = replace(trials["one"], enabled=False)
    assert inside(off) == set()
    assert {name: inside(trials[name]) for name in others} == others


def test_the_arms_of_a_layers_experiment_are_independent_of_the_layer():
    trial = layered()["one"]
    counts = Counter(trial.assign(unit).name for unit in inside(trial))
    assert abs(counts["a"] / counts.total() - 0.5) < 0.03


def test_a_layers_holdout_is_in_none_of_its_experiments_whatever_they_do():
    plain = Arm(name="holdout", experiment="all", policy=FixedPolicy(name="plain", tier="large"))
    trials = layered(held_out=0.1, holdout=plain)
    placed = {unit: place([trials["one"]], unit, NOW) for unit in UNITS}
    held = {unit for unit, arm in placed.items() if arm is plain}
    assert abs(len(held) / len(UNITS) - 0.1) < 0.01
    off = replace(trials["three"], enabled=False)
    assert {unit for unit in UNITS if place([off], unit, NOW) is plain} == held


def test_of_experiments_that_cover_one_policy_a_unit_is_in_the_one_it_belongs_to():
    trials, asked = layered(), Arm(name=None, policy=FixedPolicy(name="asked", tier="large"))
    one, two = replace(trials["one"], ramp=0.5), trials["two"]
    among = [one, two]
    placed = Counter()
    for unit in UNITS:
        arm = place(among, unit, NOW, asked)
        placed[arm.policy.name] += 1
        owner = one.layer.owner(unit)
        expected = {"one": one.admits(unit, NOW), "two": True, "three": False}[owner]
        assert (arm is asked) is not expected
    assert abs(placed["asked"] / len(UNITS) - 0.625) < 0.015


def test_other_terms_change_the_weights_and_mark_the_arms_with_the_version():
    trial = experiment(a=1, b=1)
    terms = trial.terms.changed({"weights": {"b": 0}, "ramp": 0.5})
    changed = trial.under(terms, 7)
    assert [(arm.weight, arm.version) for arm in changed.arms] == [(1, 7), (0, 7)]
    assert changed.ramp == 0.5
    assert changed.elsewhere.version == 7
    assert changed.terms == terms
