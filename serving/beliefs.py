"""Gives a policy what it believes of its tiers beside its estimator's word: a posterior, a prior.

And refuses, or warns of, one that would weigh dollars against quality without knowing both.
"""

from collections.abc import Mapping
from dataclasses import replace

from cascade.errors import ConfigError
from cascade.experiments import Arm
from cascade.posterior import PRIOR
from cascade.tiers import ModelTier
from serving.factories import at
from serving.posteriors import Surroundings, posterior_for
from serving.shadow.check import tiers_asked


def believing(
    name: str, arm: Arm, tiers: Mapping[str, ModelTier], among: Surroundings
) -> tuple[Arm, list[str]]:
    """The arm with its posterior and its prior, and what may not work as it was meant.

    Args:
        name: of the policy.
        arm: what its name stands for, without them.
        tiers: all there are.
        among: what it is built among.

    Raises:
        ConfigError: the posterior is not for this policy, the prior names a tier that there is
            not, or a tier that is asked, be it by a judge, has no price and the policy weighs
            dollars.
    """
    entry, where = among.config.policies[name], f"policies.{name}"
    for tier in entry.prior:
        if tier not in tiers:
            raise ConfigError(
                f"there is no tier {tier!r}; there are: {', '.join(tiers)}",
                param=f"{where}.prior.{tier}",
            )
    weighs = getattr(arm.policy, "weighs_dollars", False)
    warnings = _check_weighing(name, arm, tiers, among) if weighs else []
    arm = replace(arm, prior=entry.prior)
    if entry.posterior is None:
        return arm, warnings
    with at(f"{where}.posterior"):
        estimator = (entry.estimator, arm.estimator)
        posterior, doubts = posterior_for(entry.posterior, arm.policy, estimator, among)
    warnings += [f"policy {name}: of its posterior: {each}" for each in doubts]
    if unheard := [tier for tier in entry.prior if tier in posterior.manifest.rates]:
        warnings.append(
            f"policy {name}: it has both a posterior and a prior; where there is no estimate the "
            f"posterior's rates are believed of {' and '.join(unheard)}, not {where}.prior: leave "
            "one of them out"
        )
    return replace(arm, posterior=posterior), warnings


def _check_weighing(
    name: str, arm: Arm, tiers: Mapping[str, ModelTier], among: Surroundings
) -> list[str]:
    """Dollars can be weighed only where there are prices and something is known of quality."""
    entry, asked = among.config.policies[name], dict.fromkeys(s.tier for s in arm.policy.steps)
    for tier in asked:
        if tiers[tier].prices is None:
            raise ConfigError(
                f"it has no price, and policy {name} weighs dollars", param=f"tiers.{tier}.price"
            )
    for judge in dict.fromkeys(step.judge for step in arm.policy.steps if step.judge is not None):
        for tier in sorted(tiers_asked(among.config.judges, judge) & tiers.keys()):
            if tiers[tier].prices is None:
                raise ConfigError(
                    f"it has no price, judge {judge} asks it, and policy {name} weighs dollars",
                    param=f"tiers.{tier}.price",
                )
    unknown = [tier for tier in asked if tier not in entry.prior]
    if not unknown or entry.estimator is not None or entry.posterior is not None:
        return []
    each = "is" if len(unknown) == 1 else "are each"
    believed = f"{' and '.join(unknown)} {each} right with {PRIOR:g}, whatever is asked"
    cure = "name an estimator or a posterior, or state a prior"
    return [f"policy {name}: before any call it believes that {believed}; {cure}"]
