"""What a policy would have believed of a request of the log, from what another one believed.

The log has what the policy that served believed before any call. Another one believes the same if
it has the same estimator; what its posterior makes of that is worked out anew. A learned estimator
can also be asked again, by the features and the embedding that the log keeps.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cascade.audit import AuditRecord
from cascade.embedding import Embedding
from cascade.experiments import Arm
from cascade.posterior import Model, prior
from cascade.snapshot import Snapshot
from cascade.types import Beliefs
from evals.logged.traffic import numbers


@dataclass(slots=True, kw_only=True)
class Believing:
    """Beliefs of one arm.

    Attributes:
        arm: whose.
        snapshot: knows the policies that served.
    """

    arm: Arm
    snapshot: Snapshot
    _known: dict[str, str | None] = field(default_factory=dict)

    def beliefs(self, record: AuditRecord) -> Beliefs | str:
        """What it believes before any call, or why that cannot be told."""
        if self.arm.estimator is None:
            return self._without_estimator(record)
        if getattr(self.arm.policy, "heedless", False):  # then any will do
            return self.arm.posterior.after(_logged(record), [])
        if record.policy not in self._known:
            self._known[record.policy] = self._why_not(record.policy)
        if (why := self._known[record.policy]) is not None:
            return self._again(record) or why
        served = self.snapshot.arms[record.policy]
        if _digest(served) == _digest(self.arm):
            return self.arm.posterior.after(_logged(record), [])
        return self.arm.posterior.before(_logged(record))

    def _again(self, record: AuditRecord) -> Beliefs | None:
        """What a learned estimator says of what the log keeps; None where that is not enough."""
        ask = getattr(self.arm.estimator, "again", None)
        if ask is None:
            return None
        features = numbers(record)
        told: Beliefs | None = ask(features, _embedding(record), features.get("escalation", 0.0))
        return None if told is None else self.arm.posterior.before(told)

    def _without_estimator(self, record: AuditRecord) -> Beliefs:
        start = prior(self.snapshot.tiers, "no_estimator")
        start = replace(start, mean={**start.mean, **_stated(self.arm, self.snapshot.tiers)})
        return self.arm.posterior.before(replace(start, features=dict(record.features or {})))

    def _why_not(self, policy: str) -> str | None:
        served = self.snapshot.arms.get(policy)
        if served is None:
            return f"policy {policy} is not in this configuration"
        if served.estimator is not self.arm.estimator:
            return f"policy {policy} believed another estimator"
        if _digest(served) not in {"", _digest(self.arm)}:
            return f"policy {policy} has another posterior"
        return None


def _embedding(record: AuditRecord) -> Embedding | None:
    kept = record.embedding
    if not kept:
        return None
    halves = np.frombuffer(b64decode(kept["float16"]), dtype="<f2")
    return Embedding(model=kept["model"], vector=halves.astype(float).tolist())


def _logged(record: AuditRecord) -> Beliefs:
    return Beliefs(
        mean=dict(record.beliefs or {}),
        flags=frozenset(record.belief_flags),
        features=dict(record.features or {}),
    )


def _stated(arm: Arm, tiers: Mapping[str, object]) -> dict[str, float]:
    return {tier: q for tier, q in arm.prior.items() if tier in tiers}


def _digest(arm: Arm) -> str:
    return arm.posterior.digest if isinstance(arm.posterior, Model) else ""
