"""Settings are chosen on rows of their own: those at which a quality is reached, and the hull."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evals.frontier.metrics import hull
from evals.frontier.replayed import Mixed, Replayed
from evals.frontier.sweep import Curve, Floats, Ints
from evals.tables import OutcomeTable

TARGETS: Final = (0.95, 0.98, 0.99, 1.0)
"""Of the best single tier's quality."""

_ENOUGH: Final = 1e-12
_ON_HULL: Final = 400
"""Settings of a hull that are kept: between neighbours of so many it is as good as straight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the choose rows say of a policy.

    Attributes:
        targets: of each of TARGETS, the cheapest setting that reaches it; None where none does.
        costs: of each target that is reached, what that setting costs on these rows.
        hull: the settings on the convex hull, from the cheapest, or as many as tell its shape.
        curve: what it comes to on these rows, at the settings that somebody might run.
    """

    targets: dict[float, float | None]
    costs: dict[float, float]
    hull: Floats
    curve: Curve


def choose(policy: Replayed, table: OutcomeTable, best: int) -> Chosen:
    """The settings of a policy, chosen on these rows.

    Args:
        policy: fitted elsewhere.
        table: the choose rows.
        best: the single tier whose quality is the measure.
    """
    curve = sound(policy, policy.curve(table))
    single = float(table.quality[:, best].mean())
    find = along if isinstance(policy, Mixed) else cheapest
    found = {share: find(curve, share * single) for share in TARGETS}
    reached = {share: place for share, place in found.items() if place is not None}
    return Chosen(
        targets=dict.fromkeys(TARGETS)
        | {share: float(between(curve.knob, place)) for share, place in reached.items()},
        costs={share: float(between(curve.cost, place)) for share, place in reached.items()},
        hull=curve.knob[_some(hull(curve.cost, curve.quality))],
        curve=curve,
    )


def between(values: Floats, place: float) -> Any:
    """What is at a place of a curve, which may lie between two settings of a line."""
    low, part = int(place), place - int(place)
    return values[low] if part == 0.0 else values[low] * (1.0 - part) + values[low + 1] * part


def sound(policy: Replayed, curve: Curve) -> Curve:
    """The settings that somebody might run; the first one at least."""
    kept = max(1, int(np.count_nonzero(curve.knob > policy.least)))
    return Curve(
        knob=curve.knob[:kept],
        cost=curve.cost[:kept],
        quality=curve.quality[:kept],
        shares=curve.shares[:kept],
    )


def cheapest(curve: Curve, quality: float) -> int | None:
    """The place of the cheapest setting of that quality; None where there is none."""
    enough = np.flatnonzero(curve.quality >= quality - _ENOUGH)
    return int(enough[curve.cost[enough].argmin()]) if len(enough) else None


def along(line: Curve, quality: float) -> float | None:
    """The least place on a line that has that quality; between two settings it is straight."""
    reached = line.quality >= quality - _ENOUGH
    at = int(reached.argmax())
    if not reached[at]:
        return None
    if at == 0:
        return 0.0
    low, high = line.quality[at - 1], line.quality[at]
    return float(at - 1 + (quality - low) / (high - low))


def _some(on: Ints) -> Ints:
    """All settings of a hull, or as many evenly from the first to the last."""
    if len(on) <= _ON_HULL:
        return on
    return on[np.linspace(0, len(on) - 1, _ON_HULL).round().astype(np.int64)]
