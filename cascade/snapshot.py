"""One immutable configuration, ready to serve. A request keeps the one it started with."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cascade.errors import UnknownModelError
from cascade.experiments import Arm, Experiment, place
from cascade.policies.fixed import FixedPolicy
from cascade.protocols import Judge
from cascade.tiers import ModelTier
from cascade.types import ChatRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a request can meet, by name.

    Attributes:
        version: hash of the configuration it was built from.
        prices_version: hash of the tiers' price cards.
        warnings: what may not work as it was meant, for whoever starts the service.
        arms: what a policy's name stands for when it is asked for directly.
        ruled_out: the tiers that a request must not go to, whatever a policy wants, with why, as
            the rest of a sentence.
        drained: of those, the tiers that an operator took out for a while, with why.
        pinned: what answers everything, whatever is asked for; None: what is asked for.
    """

    version: str
    prices_version: str = ""
    warnings: Sequence[str] = ()
    tiers: Mapping[str, ModelTier]
    judges: Mapping[str, Judge] = field(default_factory=dict)
    arms: Mapping[str, Arm] = field(default_factory=dict)
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    ruled_out: Callable[[ChatRequest], Mapping[str, str]] = lambda _: {}
    drained: Mapping[str, str] = field(default_factory=dict)
    pinned: Arm | None = None

    @property
    def models(self) -> list[tuple[str, str]]:
        """(name, kind) of everything a client may put into the model field."""
        return [
            *((name, "experiment") for name in self.experiments),
            *((name, "policy") for name in self.arms),
            *((name, "tier") for name in self.tiers),
        ]

    def trials(self, model: str) -> Sequence[Experiment]:
        """The experiments that a request for a model name may be in; several are of one layer."""
        if model in self.experiments:
            return (self.experiments[model],)
        return [each for each in self.experiments.values() if model in each.covers]

    def arm(self, model: str, unit: str, now: float | None = None) -> Arm:
        """What answers a request for a model name: an experiment's arm, a policy or a tier.

        Args:
            model: the name.
            unit: the sticky key, of the kind that `trials` share; of no account without any.
            now: seconds since the epoch; None: the time it is.

        Raises:
            UnknownModelError: there is nothing of that name.
        """
        if all(model not in named for named in (self.experiments, self.arms, self.tiers)):
            names = ", ".join(name for name, _ in self.models)
            raise UnknownModelError(
                f"there is no model {model!r}; there are: {names}", param="model"
            )
        if self.pinned is not None:
            return self.pinned
        if trials := self.trials(model):
            when = time.time() if now is None else now
            return place(trials, unit, when, self.arms.get(model))
        return self.arms.get(model) or pinned_to(model, name=model)


def pinned_to(tier: str, *, name: str, version: int | None = None) -> Arm:
    """Whatever is asked goes to one tier, by a policy of that name."""
    return Arm(name=None, policy=FixedPolicy(name=name, tier=tier), version=version)
