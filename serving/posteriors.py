"""Loads a fitted posterior for a policy, and refuses one that was fitted for something else."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cascade.posterior import Model, load
from cascade.protocols import DifficultyEstimator, Judge, RoutingPolicy
from serving import config as cfg
from serving.identities import estimator_identity, judge_identity


class Surroundings(NamedTuple):
    """What a policy is built among.

    Attributes:
        config: the configuration.
        base: folder that relative paths in it start from.
        judges: all of them, built.
    """

    config: cfg.Config
    base: Path
    judges: Mapping[str, Judge]


def posterior_for(
    artifact: str,
    policy: RoutingPolicy,
    estimator: tuple[str | None, DifficultyEstimator | None],
    among: Surroundings,
) -> tuple[Model, list[str]]:
    """The posterior of an artifact, and what may not work as it was meant.

    Args:
        artifact: that `cascade train posterior` wrote; relative to the configuration.
        policy: whose steps say which tiers are asked and who judges them.
        estimator: the policy's, with its name; two times None without one.
        among: what the policy is built among.

    Raises:
        ConfigError: the artifact is damaged, or was fitted for other tiers, judges or another
            estimator.
    """
    config, base, judges = among
    model = load(base / artifact)
    judged = {step.tier: step.judge for step in policy.steps if step.judge is not None}
    model.check(
        tiers=[step.tier for step in policy.steps],
        judges={t: judge_identity(config, base, judges, name) for t, name in judged.items()},
        estimator=estimator_identity(config, *estimator),
    )
    served = {tier: entry.served_model for tier, entry in config.tiers.items()}
    return model, [f"{each}; what it says may mean nothing" for each in model.warnings(served)]
