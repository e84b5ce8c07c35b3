"""Which arm of an experiment a unit is in: a pure function of the unit, the same in every process.

Weighted rendezvous hashing: each arm draws -weight / ln(u) from a hash u of salt, unit and arm, and
the largest wins. An arm wins with probability proportional to its weight, and changing one weight
moves units only between that arm and the others (Thaler and Ravishankar, 1998; the weights after
Schindelhauer and Schomaker, 2005). The same decides which experiment of a layer has a unit.

Who is in at all is decided before, by another hash, so that a ramp that rises keeps who is in, and
keeps each in its arm.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cascade.posterior import Posterior, Unfitted
from cascade.protocols import DifficultyEstimator, RoutingPolicy
from cascade.terms import Terms, running

UNFITTED = Unfitted()
HOLDOUT = "holdout"
"""The arm that a layer's held out units are recorded with, the layer being the experiment."""

_ARM, _LAYER, _RAMP, _HOLDOUT = b"", b"layer", b"ramp", b"holdout"
_BITS = 52
_SCALE = 2.0**_BITS
"""So many bits and a half are a double exactly, which is never 0 or 1."""


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
class Layer:
    """Experiments that never share a unit, and the units that none of them gets.

    Attributes:
        shares: by experiment, its weight among them.
        held_out: share of the units that are in none of them, whatever they do, from 0 to 1.
        holdout: how those are answered; needed when there are any.
    """

    name: str
    shares: Mapping[str, float]
    salt: str = ""
    held_out: float = 0.0
    holdout: Arm | None = None

    def held(self, unit: str) -> Arm | None:
        """How a unit is answered that is in none of the layer's experiments; None of others."""
        if self.holdout is None:
            return None
        drawn = _uniform(_HOLDOUT, self.salt or self.name, unit)
        return self.holdout if drawn < self.held_out else None

    def owner(self, unit: str) -> str:
        """The only experiment of the layer that the unit can be in."""
        salt = self.salt or self.name
        return max(self.shares, key=lambda each: _draw(_LAYER, self.shares[each], salt, unit, each))


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Arms, who may be in, and the salt that makes its assignment independent of others.

    Attributes:
        unit: which key of a request is sticky: "session", "tenant", "user", "request", or
            "header:NAME".
        outside: how those are answered who are not in; None: as the first arm's policy would.
        layer: what it shares with the experiments that it shares no unit with.
        covers: names of policies that a client may ask for and be in it.
        enabled: see Terms, as for ramp, start and end.
    """

    name: str
    arms: Sequence[Arm]
    salt: str = ""
    unit: str = "session"
    outside: Arm | None = None
    layer: Layer | None = None
    covers: Sequence[str] = ()
    enabled: bool = True
    ramp: float = 1.0
    start: float | None = None
    end: float | None = None

    @property
    def terms(self) -> Terms:
        """What of it may change while it runs."""
        return Terms(
            enabled=self.enabled,
            ramp=self.ramp,
            weights={str(arm.name): arm.weight for arm in self.arms},
            start=self.start,
            end=self.end,
        )

    def under(self, terms: Terms, version: int) -> "Experiment":
        """The experiment under other terms, those of an override of that version."""
        arms = [
            replace(arm, weight=terms.weights[str(arm.name)], version=version) for arm in self.arms
        ]
        return replace(
            self,
            arms=arms,
            outside=replace(self.elsewhere, version=version),
            enabled=terms.enabled,
            ramp=terms.ramp,
            start=terms.start,
            end=terms.end,
        )

    @property
    def elsewhere(self) -> Arm:
        """How those are answered who are not in: as by a policy that is asked for directly."""
        return self.outside or replace(self.arms[0], name=None, experiment=None, weight=1.0)

    def admits(self, unit: str, now: float) -> bool:
        """Whether a unit is in at a time, in seconds since the epoch."""
        if not running(self, now):
            return False
        if self.layer is not None and self.layer.owner(unit) != self.name:
            return False
        return self.ramp >= 1 or _uniform(_RAMP, self.salt or self.name, unit) < self.ramp

    def assign(self, unit: str) -> Arm:
        """The arm of a unit that is in. An arm of weight zero gets nobody."""
        salt = self.salt or self.name
        return max(self.arms, key=lambda arm: _draw(_ARM, arm.weight, salt, unit, arm.name or ""))


def place(among: Iterable[Experiment], unit: str, now: float, otherwise: Arm | None = None) -> Arm:
    """How a unit is answered that may be in any of some experiments, and is in one at most.

    Args:
        among: one experiment, or several of one layer.
        unit: the sticky key, of the kind that they share.
        now: seconds since the epoch.
        otherwise: how it is answered when it is in none; None: as those outside of the last one.
    """
    outside = otherwise
    for experiment in among:
        held = experiment.layer.held(unit) if experiment.layer else None
        if held is not None:
            return held
        if experiment.admits(unit, now):
            return experiment.assign(unit)
        outside = otherwise or experiment.elsewhere
    if outside is None:
        raise ValueError("there is no experiment to be in, and nothing otherwise")
    return outside


def _draw(kind: bytes, weight: float, *parts: str) -> float:
    return -weight / math.log(_uniform(kind, *parts)) if weight > 0 else -1.0


def _uniform(kind: bytes, *parts: str) -> float:
    """Above 0 and below 1; each kind of draw is independent of the others."""
    key = "\x1f".join(parts).encode(errors="surrogatepass")
    digest = hashlib.blake2b(key, digest_size=8, person=kind).digest()
    return ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / _SCALE
