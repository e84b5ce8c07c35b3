from collections import Counter

from cascade.experiments import Arm, Experiment
from cascade.policies.fixed import FixedPolicy

UNITS = [f"unit-{i}" for i in range(20_000)]
POLICY = FixedPolicy(name="p", tier="small")


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
