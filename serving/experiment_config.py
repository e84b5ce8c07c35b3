"""The part of the configuration that says who is answered how, to find out which way is better."""

import re
from typing import Annotated

from pydantic import AwareDatetime, Field, field_validator, model_validator

from cascade.terms import Terms
from serving.control import HEADERS, PREFIX
from serving.tier_config import Strict

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
Share = Annotated[float, Field(ge=0, le=1)]

HEADER = "header:"
_UNIT = r"^(session|tenant|user|request|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
_CREDENTIALS = re.compile(
    "authorization|cookie|secret|password|token|(api|access|subscription)-?key"
)
"""Names of headers whose values must not be written into the audit log, as a unit is."""
_OURS = frozenset({*HEADERS.values(), f"{PREFIX}tenant"})


class ArmEntry(Strict):
    """One arm of an experiment.

    Attributes:
        estimator: instead of the policy's own.
    """

    policy: str
    estimator: str | None = None
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)


class Holdout(Strict):
    """Units of a layer that no experiment gets, so that all of them can be told from none."""

    share: Share
    policy: str


class Layer(Strict):
    """Experiments that never share a unit."""

    salt: str = ""
    holdout: Holdout | None = None


class Guardrails(Strict):
    """How much worse than the control arm another may be, with confidence, before it is turned off.

    Attributes:
        quality: in [-1, 0]: how much lower its quality may be; -0.02 is two points.
        cost: how much more a request may cost, relative; 0.5 is half as much again.
        error_rate: how much higher its share of failed requests may be; 0.01 is a point.
        latency_p95: how much longer its slowest twentieth may take, relative.
    """

    quality: Annotated[float, Field(ge=-1, le=0)] | None = None
    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    error_rate: Share | None = None
    latency_p95: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class Experiment(Strict):
    """Arms, what is sticky, and who is in.

    Attributes:
        unit: session, tenant, user, request or header:NAME; a request without such a key is told
            by its session.
        layer: a unit is in one experiment of a layer at most.
        share: weight among the experiments of the layer.
        covers: policies; who asks for one of them may be in.
        outside: the policy for who is not in; the first arm's when it is not stated.
        enabled: off: nobody is in.
        ramp: share of the units that are in.
        start: with an offset from UTC; nobody is in before.
        end: the same; nobody is in from then on.
        guardrails: bounds at which an arm is turned off by itself.
        margin: by how much quality may be lower and still count as no worse in the results.
    """

    unit: Annotated[str, Field(pattern=_UNIT)] = "session"
    salt: str = ""
    arms: dict[Name, ArmEntry] = Field(min_length=1)
    layer: str | None = None
    share: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    covers: list[str] = Field(default_factory=list)
    outside: str | None = None
    enabled: bool = True
    ramp: Share = 1.0
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    guardrails: Guardrails = Guardrails()
    margin: Share = 0.01

    @property
    def terms(self) -> Terms:
        """What of it may change while it runs."""
        return Terms(
            enabled=self.enabled,
            ramp=self.ramp,
            weights={name: arm.weight for name, arm in self.arms.items()},
            start=self.start.timestamp() if self.start else None,
            end=self.end.timestamp() if self.end else None,
        )

    @field_validator("unit")
    @classmethod
    def _no_secret(cls, unit: str) -> str:
        if not unit.startswith(HEADER):
            return unit
        header = unit.lower()
        name = header.removeprefix(HEADER)
        if _CREDENTIALS.search(name):
            raise ValueError("the value of that header is a secret, and the audit log keeps units")
        if name.startswith(PREFIX) and name not in _OURS:
            raise ValueError(f"a request with that header is refused, as {PREFIX} is Cascade's own")
        return header

    @model_validator(mode="after")
    def _somebody_gets_in(self) -> "Experiment":
        if not any(arm.weight > 0 for arm in self.arms.values()):
            raise ValueError("at least one arm needs a weight above 0")
        if self.start and self.end and self.start >= self.end:
            raise ValueError("end must be after start")
        return self
