"""A service with the default configuration's names over two scripted models."""

from cascade.experiments import Arm, Experiment
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import LadderPolicy, Rung
from cascade.snapshot import Snapshot
from judges.logprob import LogprobJudge
from tests.engines import tier


def cascade_of(*, small=("4",), large=("4",), accept_at=0.5):
    steps = (Rung(tier="small", judge="logprob", accept_at=accept_at), Rung(tier="large"))
    policies = (
        FixedPolicy(name="always-small", tier="small"),
        FixedPolicy(name="always-large", tier="large"),
        LadderPolicy(name="cascade", steps=steps),
        FixedPolicy(name="small", tier="small"),
        FixedPolicy(name="large", tier="large"),
    )
    trial = [Arm(name="cascade", policy=policies[2], experiment="auto", weight=1)]
    return Snapshot(
        version="v1",
        tiers={"small": tier("small", *small), "large": tier("large", *large)},
        judges={"logprob": LogprobJudge()},
        arms={policy.name: Arm(name=None, policy=policy) for policy in policies},
        experiments={"auto": Experiment(name="auto", arms=trial)},
    )
