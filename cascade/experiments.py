"""Which arm of an experiment a unit is in: a pure function of the unit, the same in every process.

Weighted rendezvous hashing: each arm draws -weight / ln(u) from a hash u of salt, unit and arm, and
the largest wins. An arm wins with probability proportional to its weight, and changing one weight
moves units only between that arm and the others (Thaler and Ravishankar, 1998; the weights after
Schindelhauer and Schomaker, 2005).
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cascade.posterior import Posterior, Unfitted
from cascade.protocols import DifficultyEstimator, RoutingPolicy

UNFITTED = Unfitted()
_SCALE = 2.0**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to answer: an estimator, a policy, and its share of the units.

    Attributes:
        posterior: what puts the estimate and the judges' words together.
        prior: P(a tier's answer is acceptable) where there is no estimate; of other tiers one half.
        version: of what overrides the experiment's place in the file; None: nothing does.
    """

    name: str | None
    policy: RoutingPolicy
    estimator: DifficultyEstimator | None = None
    posterior: Posterior = UNFITTED
    prior: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    experiment: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Arms and the salt that makes this experiment's assignment independent of others.

    Attributes:
        unit: which key of a request is sticky: "session", "tenant" or "request".
    """

    name: str
    arms: Sequence[Arm]
    salt: str = ""
    unit: str = "session"

    def assign(self, unit: str) -> Arm:
        """The arm of a unit. An arm of weight zero gets nobody."""
        return max(self.arms, key=lambda arm: self._draw(unit, arm))

    def _draw(self, unit: str, arm: Arm) -> float:
        if arm.weight <= 0:
            return -1.0
        key = "\x1f".join((self.salt or self.name, unit, arm.name or "")).encode()
        digest = hashlib.blake2b(key, digest_size=8).digest()
        uniform = (int.from_bytes(digest, "big") + 0.5) / _SCALE
        return -arm.weight / math.log(uniform)
