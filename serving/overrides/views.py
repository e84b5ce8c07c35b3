"""Overrides, and experiments under them, as programs and people are told of them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cascade.experiments import Experiment
from cascade.snapshot import Snapshot
from cascade.terms import Terms, running, timestamp
from serving import config as cfg
from serving.overrides.apply import Ground, drains_of
from serving.overrides.store import EXPERIMENT, PIN, Override, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of an experiment only the file can change.

    Attributes:
        arms: by name, its policy, and its estimator where there is one.
        outside: the policy of those who are not in.
    """

    unit: str
    salt: str
    layer: str | None
    covers: Sequence[str]
    outside: str
    arms: Mapping[str, tuple[str, str | None]]


def shapes_of(snapshot: Snapshot) -> dict[str, Shape]:
    """The experiments of a configuration as it was built."""
    return {name: _built(each) for name, each in snapshot.experiments.items()}


def shapes_in(config: cfg.Config) -> dict[str, Shape]:
    """The experiments of a configuration file."""
    return {
        name: Shape(
            unit=entry.unit,
            salt=entry.salt or name,
            layer=entry.layer,
            covers=entry.covers,
            outside=entry.outside or next(iter(entry.arms.values())).policy,
            arms={
                arm: (each.policy, each.estimator or config.policies[each.policy].estimator)
                if each.policy in config.policies
                else (each.policy, each.estimator)
                for arm, each in entry.arms.items()
            },
        )
        for name, entry in config.experiments.items()
    }


def ground_in(config: cfg.Config) -> Ground:
    """What of a configuration file overrides can stand on."""
    terms = {name: entry.terms for name, entry in config.experiments.items()}
    return Ground(tiers=list(config.tiers), experiments=terms)


def experiments_json(
    ground: Ground, shapes: Mapping[str, Shape], state: State, versions: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Every experiment: what the file says, what overrides it, and what holds.

    Args:
        ground: the file.
        shapes: of the experiments, by name.
        state: what is in force.
        versions: by subject that was ever overridden, its newest version.
    """
    return [
        _experiment(name, shapes[name], ground, state.get(EXPERIMENT + name))
        | {"version": versions.get(EXPERIMENT + name, 0)}
        for name in ground.experiments
    ]


def overrides_json(state: State, version: int, left_out: Sequence[str]) -> dict[str, Any]:
    """What is in force of all.

    Args:
        state: by subject.
        version: the newest of all.
        left_out: what the file has no room for.
    """
    pinned = state.get(PIN)
    return {
        "version": version,
        "pin": override_json(pinned) if pinned else None,
        "drains": {tier: override_json(each) for tier, each in drains_of(state).items()},
        "in_force": [override_json(each) for each in state.values()],
        "left_out": list(left_out),
    }


def override_json(override: Override) -> dict[str, Any]:
    """One override."""
    return {
        "version": override.version,
        "subject": override.subject,
        "value": override.value,
        "until": _time(override.until),
        "who": override.who,
        "why": override.why,
        "created_at": timestamp(override.created_at),
    }


def terms_json(terms: Terms) -> dict[str, Any]:
    """Terms, in the form in which a change states them."""
    return {
        "enabled": terms.enabled,
        "ramp": terms.ramp,
        "weights": dict(terms.weights),
        "start": _time(terms.start),
        "end": _time(terms.end),
    }


def status_of(terms: Terms, now: float) -> str:
    """Whether an experiment runs: running, off, waiting for its start, or over."""
    if running(terms, now):
        return "running"
    if not terms.enabled:
        return "off"
    return "waiting" if terms.start is not None and now < terms.start else "over"


def _experiment(
    name: str, shape: Shape, ground: Ground, override: Override | None
) -> dict[str, Any]:
    file = ground.experiments[name]
    kept, faults = file.bearing((override and override.value) or {})
    terms = file.changed(kept)
    return {
        "name": name,
        "status": status_of(terms, time.time()),
        **terms_json(terms),
        "unit": shape.unit,
        "salt": shape.salt,
        "layer": shape.layer,
        "covers": list(shape.covers),
        "outside": shape.outside,
        "arms": [
            {"name": arm, "policy": policy, "estimator": estimator, "weight": terms.weights[arm]}
            for arm, (policy, estimator) in shape.arms.items()
        ],
        "file": terms_json(file),
        "override": None if override is None else override_json(override),
        "left_out": "; ".join(f"{each.param}: {each.message}" for each in faults) or None,
    }


def _built(experiment: Experiment) -> Shape:
    return Shape(
        unit=experiment.unit,
        salt=experiment.salt or experiment.name,
        layer=experiment.layer.name if experiment.layer else None,
        covers=experiment.covers,
        outside=experiment.elsewhere.policy.name,
        arms={
            str(arm.name): (arm.policy.name, arm.estimator.name if arm.estimator else None)
            for arm in experiment.arms
        },
    )


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
