from dataclasses import replace

import pytest

from cascade.audit import record
from cascade.embedding import Embedding
from cascade.experiments import Arm
from cascade.policies.ladder import LadderPolicy
from cascade.snapshot import Snapshot
from cascade.types import Beliefs
from evals.logged.believing import Believing
from tests.builders import result
from tests.engines import tier

UNSURE = LadderPolicy(
    name="unsure",
    steps=[{"tier": "small", "judge": "told", "accept_at": 0.5}, {"tier": "large"}],
    when_unsure="large",
)


class Estimator:
    """Says the same of everything, and remembers what it was asked again."""

    def __init__(self, *, again=None):
        self.seen = []
        if again is not None:
            self.again = lambda *kept: self.seen.append(kept) or again


def known(**arms):
    tiers = {name: tier(name) for name in ("small", "large")}
    return Snapshot(version="v1", tiers=tiers, arms=arms)


def arm(estimator=None, **more):
    return Arm(name=None, policy=UNSURE, estimator=estimator, **more)


def row(policy="served", **beliefs):
    told = {"mean": {"small": 0.4, "large": 0.8}, "features": {"length": 3.0}, **beliefs}
    return record(result(policy=policy, beliefs=Beliefs(**told)), embeddings=True)


def test_a_policy_with_the_same_estimator_believes_what_was_believed():
    one = Estimator()
    believing = Believing(arm=arm(one), snapshot=known(served=arm(one)))
    found = believing.beliefs(row(flags=frozenset({"out_of_domain"})))
    assert found.mean == {"small": 0.4, "large": 0.8}
    assert found.flags == {"out_of_domain"}
    assert set(found.covariance) == {("small", "small"), ("large", "large")}


def test_a_policy_without_an_estimator_believes_its_prior():
    mine = arm(prior={"small": 0.3})
    found = Believing(arm=mine, snapshot=known(served=arm(Estimator()))).beliefs(row())
    assert found.mean == {"small": 0.3, "large": 0.5}
    assert found.flags == {"no_estimator"}


def test_one_that_looks_at_no_beliefs_can_be_asked_about_everything():
    ladder = LadderPolicy(name="plain", steps=[{"tier": "small"}])
    mine = Arm(name=None, policy=ladder, estimator=Estimator())
    assert Believing(arm=mine, snapshot=known()).beliefs(row("gone")).mean["small"] == 0.4


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("gone", "policy gone is not in this configuration"),
        ("served", "policy served believed another estimator"),
    ],
)
def test_what_another_estimator_would_have_said_is_not_known(policy, why):
    believing = Believing(arm=arm(Estimator()), snapshot=known(served=arm(Estimator())))
    assert believing.beliefs(row(policy)) == why


def test_one_that_can_be_asked_again_is():
    told = Beliefs(mean={"small": 0.9, "large": 0.95})
    mine = Estimator(again=told)
    believing = Believing(arm=arm(mine), snapshot=known(served=arm(Estimator())))
    kept = Embedding(model="words-1", vector=[0.25, -0.5])
    found = believing.beliefs(row(embedding=kept, features={"length": 3.0, "escalation": 0.5}))
    assert found.mean == told.mean
    assert mine.seen == [({"length": 3.0, "escalation": 0.5}, kept, 0.5)]


def test_one_that_has_too_little_to_say_it_again_does_not():
    class Silent(Estimator):
        def again(self, *kept):
            return None

    believing = Believing(arm=arm(Silent()), snapshot=known(served=arm(Estimator())))
    assert believing.beliefs(row()) == "policy served believed another estimator"
    assert believing.beliefs(replace(row(), embedding=None)) == (
        "policy served believed another estimator"
    )
