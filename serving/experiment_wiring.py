"""Builds the experiments of a configuration, after the policies that their arms name.

A part of the composition root.
"""

from collections.abc import Mapping
from dataclasses import replace

from cascade.errors import ConfigError
from cascade.experiments import HOLDOUT, Arm, Experiment, Layer
from cascade.protocols import DifficultyEstimator
from cascade.tiers import ModelTier
from serving import experiment_config as cfg
from serving.beliefs import believing
from serving.posteriors import Surroundings


class ExperimentWiring:
    """Builds experiments.

    Args:
        policies: what each policy's name stands for.
        estimators: all there are.
        tiers: all there are.
        among: what the policies were built among.
    """

    def __init__(
        self,
        policies: Mapping[str, Arm],
        estimators: Mapping[str, DifficultyEstimator],
        tiers: Mapping[str, ModelTier],
        among: Surroundings,
    ) -> None:
        self.warnings: list[str] = []
        self._policies = policies
        self._estimators = estimators
        self._tiers = tiers
        self._among = among
        self._entries = among.config.experiments

    def experiments(self) -> dict[str, Experiment]:
        """All of them, by name.

        Raises:
            ConfigError: one names what is not there, or two would share what they may not.
        """
        layers = {n: self._layer(n, entry) for n, entry in self._among.config.layers.items()}
        self._refuse_shared_cover()
        return {
            name: self._experiment(name, entry, layers) for name, entry in self._entries.items()
        }

    def _experiment(
        self, name: str, entry: cfg.Experiment, layers: Mapping[str, Layer]
    ) -> Experiment:
        where = f"experiments.{name}"
        arms = [
            replace(self._arm(each, f"{where}.arms.{arm}"), name=arm, experiment=name)
            for arm, each in entry.arms.items()
        ]
        outside = entry.outside and self._policy(entry.outside, f"{where}.outside")
        for i, policy in enumerate(entry.covers):
            self._policy(policy, f"{where}.covers.{i}")
        if entry.layer is not None and entry.layer not in layers:
            raise ConfigError(_missing("layer", entry.layer, layers), param=f"{where}.layer")
        terms = entry.terms
        return Experiment(
            name=name,
            arms=arms,
            salt=entry.salt,
            unit=entry.unit,
            outside=outside or None,
            layer=None if entry.layer is None else layers[entry.layer],
            covers=tuple(entry.covers),
            enabled=terms.enabled,
            ramp=terms.ramp,
            start=terms.start,
            end=terms.end,
        )

    def _arm(self, entry: cfg.ArmEntry, where: str) -> Arm:
        arm = replace(self._policy(entry.policy, f"{where}.policy"), weight=entry.weight)
        if entry.estimator is None:
            return arm
        if entry.estimator not in self._estimators:
            message = _missing("estimator", entry.estimator, self._estimators)
            raise ConfigError(message, param=f"{where}.estimator")
        arm = replace(arm, estimator=self._estimators[entry.estimator])
        config, base, judges = self._among
        policy = config.policies[entry.policy].model_copy(update={"estimator": entry.estimator})
        policies = {**config.policies, entry.policy: policy}
        changed = config.model_copy(update={"policies": policies})
        arm, doubts = believing(entry.policy, arm, self._tiers, Surroundings(changed, base, judges))
        self.warnings += [f"{where}: {doubt}" for doubt in doubts]
        return arm

    def _layer(self, name: str, entry: cfg.Layer) -> Layer:
        where = f"layers.{name}"
        if name in self._entries:
            raise ConfigError(
                "an experiment has the name, and the audit log calls what the layer holds out by "
                "the layer's",
                param=where,
            )
        members = {n: e for n, e in self._entries.items() if e.layer == name}
        units = {each.unit for each in members.values()}
        if len(units) > 1:
            raise ConfigError(
                "its experiments share no unit, so they need one kind of unit, and "
                f"{', '.join(f'{n} has {e.unit}' for n, e in members.items())}",
                param=where,
            )
        held = entry.holdout
        holdout = held and self._policy(held.policy, f"{where}.holdout.policy")
        return Layer(
            name=name,
            shares={each: e.share for each, e in members.items()},
            salt=entry.salt,
            held_out=held.share if held else 0.0,
            holdout=replace(holdout, name=HOLDOUT, experiment=name) if holdout else None,
        )

    def _policy(self, name: str, where: str) -> Arm:
        if name not in self._policies:
            raise ConfigError(_missing("policy", name, self._policies), param=where)
        return self._policies[name]

    def _refuse_shared_cover(self) -> None:
        """A request is in one experiment at most, and a layer is what makes sure of it."""
        first: dict[str, str] = {}
        for name, entry in self._entries.items():
            for i, policy in enumerate(entry.covers):
                other = first.setdefault(policy, name)
                layer = self._entries[other].layer
                if other != name and (layer is None or layer != entry.layer):
                    raise ConfigError(
                        f"{other} covers {policy} as well, so both must be in one layer",
                        param=f"experiments.{name}.covers.{i}",
                    )


def _missing(kind: str, name: str, known: Mapping[str, object]) -> str:
    return f"there is no {kind} {name!r}; there are: {', '.join(known) or 'none'}"
