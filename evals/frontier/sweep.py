"""A policy over all its settings, told as what changes from one setting to the next.

Thresholds are not tried one by one: each distinct score at which a decision changes is a step, what
changes at it is added up, and so the curve is exact and costs one sort. Rows with the same score
change together, so the order of a file decides nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.tables import OutcomeTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.int8]
"""Tiers, by their place in the table."""
Masks = NDArray[np.int32]
"""Sets of tiers, one bit each."""

_ROUNDING: Final = 1e-11

Setting = Literal["reached", "passed", "between"]
"""How a knob relates to a row's key, where the decision on it changes.

"reached": falling from infinity, changed from the key itself on (go up where value >= knob).
"passed": rising, changed once it is above the key (stay where score >= knob).
"between": any value between two keys; the one in the middle stands for it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a policy comes to at each of its k settings; means over rows.

    Attributes:
        knob: the settings, in their order.
        cost: dollars.
        quality: in [0, 1].
        shares: of the answers, by the tier that gave them, of shape (k, tiers).
    """

    knob: Floats
    cost: Floats
    quality: Floats
    shares: Floats

    def __len__(self) -> int:
        return len(self.knob)


class Decisions(NamedTuple):
    """What a policy does with each row at one setting: who answers, dollars, quality."""

    served: Ints
    cost: Floats
    quality: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Decisions that change, in the order of the settings.

    Attributes:
        step: the setting from which each holds, from 1.
        row: whose decision it is.
        cost: dollars more than before.
        quality: more than before.
        before: the tier that answered before.
        after: the tier that answers then.
        asked: the tiers that are called then, one bit each.
    """

    step: NDArray[np.int32]
    row: NDArray[np.int32]
    cost: Floats
    quality: Floats
    before: Places
    after: Places
    asked: Masks


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A policy's decisions on a table, at every setting.

    Attributes:
        tiers: how many there are.
        keys: where settings change, ascending, one less than there are settings.
        knob: a value for each setting.
        setting: how the two relate.
        falling: the knob falls; keys are its negative then.
        served: the tier that answers each row at the first setting.
        asked: the tiers that are called there, one bit each.
        cost: of each row, there.
        quality: of each row, there.
        changes: what comes after.
    """

    tiers: int
    keys: Floats
    knob: Floats
    setting: Setting
    falling: bool
    served: Places
    asked: Masks
    cost: Floats
    quality: Floats
    changes: Changes

    def place(self, knob: float) -> int:
        """The number of the setting that a knob has the decisions of."""
        key = -knob if self.falling else knob
        side: Literal["left", "right"] = "left" if self.setting == "passed" else "right"
        return int(np.searchsorted(self.keys, key, side=side))

    def curve(self) -> Curve:
        """The means at every setting."""
        some, rows = self.changes, len(self.served)
        ends = self.ends()
        shares = np.empty((len(self.knob), self.tiers))
        for tier in range(self.tiers):
            moved = (some.after == tier).astype(np.int8) - (some.before == tier)
            shares[:, tier] = _along(float(np.sum(self.served == tier)), moved, ends) / rows
        return Curve(
            knob=self.knob,
            cost=_along(self.cost.sum(), some.cost, ends) / rows,
            quality=_along(self.quality.sum(), some.quality, ends) / rows,
            shares=shares,
        )

    def ends(self) -> Ints:
        """Of each setting after the first, how many changes there are up to it."""
        return np.searchsorted(self.changes.step, np.arange(1, len(self.knob)), side="right")

    def at(self, knob: float) -> Decisions:
        """The decisions at one setting, of the table that was swept."""
        some = self.changes
        until = int(np.searchsorted(some.step, self.place(knob), side="right"))
        served = self.served.astype(np.int64)
        served[some.row[:until]] = some.after[:until]  # a row's last change stands
        cost, quality = self.cost.copy(), self.quality.copy()
        np.add.at(cost, some.row[:until], some.cost[:until])
        np.add.at(quality, some.row[:until], some.quality[:until])
        return Decisions(served, cost, quality)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Each row's way through the settings: what it begins with, and what then becomes of it.

    Attributes:
        served: the tier that answers at the first setting, of shape (rows,).
        asked: the tiers that are called there, one bit each; none: only that one.
        cost: dollars there, judges included.
        row: of each change; those of a row stand together, in the order of their keys.
        key: where it happens, in ascending order of the settings.
        after: the tier that answers then.
        after_asked: the tiers that are called then, one bit each; none: only that one.
        after_cost: dollars then.
    """

    served: Places
    asked: Masks | None = None
    cost: Floats
    row: NDArray[np.int32]
    key: Floats
    after: Places
    after_asked: Masks | None = None
    after_cost: Floats


def swept(table: OutcomeTable, paths: Paths, setting: Setting, *, falling: bool) -> Sweep:
    """The sweep of a table whose rows go these ways; the keys of a falling knob are negated."""
    first = np.diff(paths.row, prepend=-1) != 0
    before = np.where(first, paths.served[paths.row], np.roll(paths.after, 1))
    cost_before = np.where(first, paths.cost[paths.row], np.roll(paths.after_cost, 1))
    gain = table.quality[paths.row, paths.after] - table.quality[paths.row, before]
    asked = _only(paths.after) if paths.after_asked is None else paths.after_asked
    order = np.argsort(paths.key, kind="stable")
    sorted_keys = paths.key[order]
    new = _apart(sorted_keys, _ROUNDING if setting == "between" else 0.0)
    keys = sorted_keys[new]
    return Sweep(
        tiers=len(table.tiers),
        keys=keys,
        knob=_knobs(-keys if falling else keys, setting, falling=falling),
        setting=setting,
        falling=falling,
        served=paths.served,
        asked=_only(paths.served) if paths.asked is None else paths.asked,
        cost=paths.cost,
        quality=table.quality[np.arange(len(table)), paths.served],
        changes=Changes(
            step=np.cumsum(new, dtype=np.int32),
            row=paths.row[order],
            cost=(paths.after_cost - cost_before)[order],
            quality=gain[order],
            before=before[order].astype(np.int8),
            after=paths.after[order],
            asked=asked[order],
        ),
    )


def _apart(keys: Floats, share: float) -> NDArray[np.bool_]:
    """Which of sorted keys begin a setting of their own: those more than a share of itself above.

    Keys that were computed are one where they differ by rounding alone.
    """
    found = np.ones(len(keys), dtype=np.bool_)
    found[1:] = np.diff(keys) > share * np.abs(keys[1:])
    return found


def _only(tiers: Places) -> Masks:
    return np.left_shift(1, tiers.astype(np.int32), dtype=np.int32)


def _knobs(keys: Floats, setting: Setting, *, falling: bool) -> Floats:
    """A value for each setting, of which there is one more than there are keys."""
    if setting == "reached":
        return np.concatenate([[np.inf], keys])
    if setting == "passed":
        return np.concatenate([keys, [np.inf]])
    if not len(keys):
        return np.ones(1)
    first, last = _beyond(keys[0], up=falling), _beyond(keys[-1], up=not falling)
    higher, lower = np.maximum(keys[1:], keys[:-1]), np.minimum(keys[1:], keys[:-1])
    # Around 0 it is one above 0, which is what somebody might run.
    middle = np.where((lower < 0.0) & (higher > 0.0), higher, higher + lower) / 2.0
    return np.concatenate([[first], middle, [last]])


def _beyond(end: float, *, up: bool) -> float:
    """A value beyond an end, of the same sign: twice or half of it."""
    if end == 0.0:
        return 1.0 if up else -1.0
    return float(end * (2.0 if up == (end > 0.0) else 0.5))


def _along(start: float, changes: NDArray[np.generic], ends: Ints) -> Floats:
    """Running totals from a start, at the end of each setting."""
    totals = np.cumsum(changes, dtype=np.float64)
    return start + np.concatenate([[0.0], totals[ends - 1]])
