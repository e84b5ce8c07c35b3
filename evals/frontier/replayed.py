"""Policies that need no call to be played: they decide on what a table holds."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evals.frontier.sweep import Curve, Decisions, Floats, Paths, Sweep, swept
from evals.tables import OutcomeTable

ORACLE: Final = "oracle"


class Replayed(ABC):
    """A policy with one knob.

    Attributes:
        name: what it is called.
        knob: what its setting is called; empty where there is none.
        least: settings at or below it complete the curve, and nobody would run them.
    """

    name: str
    knob: str
    least: ClassVar[float] = -np.inf

    @abstractmethod
    def sweep(self, table: OutcomeTable) -> Sweep:
        """Its decisions at every setting."""

    def curve(self, table: OutcomeTable) -> Curve:
        """What it comes to at every setting: each distinct score is a step."""
        return self.sweep(table).curve()

    def decisions(self, table: OutcomeTable, knob: float) -> Decisions:
        """Who answers each row at one setting, what that costs, and how good it is."""
        return self.sweep(table).at(knob)


@dataclass(frozen=True, slots=True, kw_only=True)
class Always(Replayed):
    """Every request goes to one tier."""

    name: str
    tier: int
    knob: str = ""

    def sweep(self, table: OutcomeTable) -> Sweep:
        """One setting."""
        rows = len(table)
        none = np.empty(0)
        paths = Paths(
            served=np.full(rows, self.tier, dtype=np.int8),
            cost=table.cost[:, self.tier],
            row=none.astype(np.int32),
            key=none,
            after=none.astype(np.int8),
            after_cost=none,
        )
        return swept(table, paths, "between", falling=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed(Replayed):
    """Requests go to one of two tiers at random: the line to beat.

    With more than two tiers the line has a bend at each that is worth mixing, and a knob of 1.3 is
    the second of them with .7 and the third with .3. A conversation stays where its first turn
    went. The curve is the line itself, of which a drawn mix is one sample.

    Attributes:
        path: the tiers, from the cheapest.
    """

    name: str = "random"
    knob: str = "share"
    path: tuple[int, ...]

    def sweep(self, table: OutcomeTable) -> Sweep:
        """One draw, by a hash of the row's id or conversation, so that it is always the same."""
        names = np.where(table.sessions != "", table.sessions, table.ids)
        drawn = np.array([_uniform(name) for name in names])
        steps = len(self.path) - 1
        row = np.repeat(np.arange(len(table)), steps)
        after = np.tile(self.path[1:], len(table))
        paths = Paths(
            served=np.full(len(table), self.path[0], dtype=np.int8),
            cost=table.cost[:, self.path[0]],
            row=row.astype(np.int32),
            key=drawn[row] + np.tile(np.arange(steps), len(table)),
            after=after.astype(np.int8),
            after_cost=table.cost[row, after],
        )
        return swept(table, paths, "between", falling=False)

    def curve(self, table: OutcomeTable) -> Curve:
        """The tiers themselves; everything between two of them is a straight line."""
        path = list(self.path)
        return Curve(
            knob=np.arange(len(path), dtype=np.float64),
            cost=table.cost[:, path].mean(axis=0),
            quality=table.quality[:, path].mean(axis=0),
            shares=np.eye(len(table.tiers))[path],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Replayed):
    """The rows with the highest value go to the strong tier, the others to the cheapest.

    Attributes:
        value: of each row, from what is known before any call.
    """

    name: str
    knob: str
    strong: int
    value: Callable[[OutcomeTable], Floats]

    def sweep(self, table: OutcomeTable) -> Sweep:
        """A row goes up where its value is at least the knob."""
        return _up(table, self.value(table), self.strong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced(Replayed):
    """Each row goes to the tier with the largest value - knob * expected dollars.

    The knob is the quality that a dollar must bring. From 0 on down money is spent for its own
    sake, so that the sweep ends at the dearest tier.

    Attributes:
        value: of each tier's answer, of shape (rows, tiers).
        price: expected dollars of each, of the same shape.
    """

    name: str
    knob: str = "quality a dollar"
    least: ClassVar[float] = 0.0
    value: Callable[[OutcomeTable], Floats]
    price: Callable[[OutcomeTable], Floats]

    def sweep(self, table: OutcomeTable) -> Sweep:
        """Every knob at which some row's best tier changes."""
        return swept(table, _envelope(table, self), "between", falling=True)


def oracle() -> Replayed:
    """Knows what each answer is worth and what it will cost; nothing does better at its price."""
    return Priced(name=ORACLE, value=lambda some: some.quality, price=lambda some: some.cost)


def _up(table: OutcomeTable, value: Floats, strong: int) -> Sweep:
    """The sweep of a pair: everything stays below first, and what has the highest value rises."""
    rows = len(table)
    paths = Paths(
        served=np.zeros(rows, dtype=np.int8),
        cost=table.cost[:, 0],
        row=np.arange(rows, dtype=np.int32),
        key=-value,
        after=np.full(rows, strong, dtype=np.int8),
        after_cost=table.cost[:, strong],
    )
    return swept(table, paths, "reached", falling=True)


def _envelope(table: OutcomeTable, policy: Priced) -> Paths:
    """Each row's upper envelope of the lines value - knob * price, from the highest knob down."""
    value, price = policy.value(table), policy.price(table)
    rows = np.arange(len(table))
    cheapest = price == price.min(axis=1, keepdims=True)
    now = np.where(cheapest, value, -np.inf).argmax(axis=1)
    served, found = now, []
    for _ in table.tiers[1:]:
        dearer = price - price[rows, now][:, None]
        gain = value - value[rows, now][:, None]
        rises = dearer > 0.0
        slope = np.divide(gain, dearer, out=np.full_like(gain, -np.inf), where=rises)
        key = slope.max(axis=1)
        nearest = np.where(slope == key[:, None], dearer, -np.inf).argmax(axis=1)
        moves = np.flatnonzero(rises.any(axis=1))
        if not len(moves):
            break
        found.append((rows[moves], -key[moves], nearest[moves]))
        now = np.where(rises.any(axis=1), nearest, now)
    row, key, after = _joined(found)
    return Paths(
        served=served.astype(np.int8),
        cost=table.cost[rows, served],
        row=row.astype(np.int32),
        key=key,
        after=after.astype(np.int8),
        after_cost=table.cost[row, after],
    )


def _joined(found: list[tuple[np.ndarray, Floats, np.ndarray]]) -> tuple[np.ndarray, ...]:
    """The changes of all rounds, those of a row together and in their order."""
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64)
    parts = [np.concatenate(some) for some in zip(*found, strict=True)]
    order = np.argsort(parts[0], kind="stable") if len(found) > 1 else slice(None)
    return tuple(part[order] for part in parts)


def _uniform(name: str) -> float:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2.0**64
