"""One immutable configuration, ready to serve. A request keeps the one it started with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cascade.errors import UnknownModelError
from cascade.experiments import Arm, Experiment
from cascade.policies.fixed import FixedPolicy
from cascade.protocols import Judge, RoutingPolicy
from cascade.tiers import ModelTier
from cascade.types import ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a request can meet, by name.

    Attributes:
        version: hash of the configuration it was built from.
        warnings: what may not work as it was meant, for whoever starts the service.
        arms: what a policy's name stands for when it is asked for directly.
        ruled_out: the tiers that a request must not go to, whatever a policy wants, with why, as
            the rest of a sentence.
    """

    version: str
    warnings: Sequence[str] = ()
    tiers: Mapping[str, ModelTier]
    judges: Mapping[str, Judge] = field(default_factory=dict)
    arms: Mapping[str, Arm] = field(default_factory=dict)
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    ruled_out: Callable[[ChatRequest], Mapping[str, str]] = lambda _: {}

    @property
    def models(self) -> list[tuple[str, str]]:
        """(name, kind) of everything a client may put into the model field."""
        return [
            *((name, "experiment") for name in self.experiments),
            *((name, "policy") for name in self.arms),
            *((name, "tier") for name in self.tiers),
        ]

    def arm(self, model: str, unit: str) -> Arm:
        """What answers a request for a model name: an experiment's arm, a policy or a tier.

        Raises:
            UnknownModelError: there is nothing of that name.
        """
        if model in self.experiments:
            return self.experiments[model].assign(unit)
        if model in self.arms:
            return self.arms[model]
        if model in self.tiers:
            return Arm(name=None, policy=_only(model))
        names = ", ".join(name for name, _ in self.models)
        raise UnknownModelError(f"there is no model {model!r}; there are: {names}", param="model")


def _only(tier: str) -> RoutingPolicy:
    return FixedPolicy(name=tier, tier=tier)
