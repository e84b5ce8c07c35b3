"""Fitted heads, applied with numpy alone: rows of inputs in, one column a thing foretold out.

A head that was fitted with scikit-learn or torch is kept as its arrays. At request time a linear
one is a dot product of microseconds, and none of the libraries that fitted it is loaded. Fitting
lives in `evals.training`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cascade.errors import ConfigError

Matrix = NDArray[np.float64]
Array = NDArray[Any]


class Head(Protocol):
    """Foretells from rows of shape (requests, width) a matrix of shape (requests, outputs)."""

    def __call__(self, rows: Matrix) -> Matrix:
        """Probabilities, or values where it was fitted by least squares."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights of shape (width, outputs) and an intercept of each output."""

    weights: Matrix
    intercepts: Matrix
    log_odds: bool

    def __call__(self, rows: Matrix) -> Matrix:
        """One dot product."""
        return _linked(rows @ self.weights + self.intercepts, log_odds=self.log_odds)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The mean of what was seen at the nearest training rows.

    Attributes:
        seen: training rows, of shape (rows, columns).
        values: what was seen there, of shape (rows, outputs); NaN where it was not.
        nearest: how many are looked at.
    """

    seen: Array
    values: Matrix
    nearest: int

    def __call__(self, rows: Matrix) -> Matrix:
        """Of each output among the rows where it was seen."""
        apart = distances(rows, self.seen)
        columns = [self._mean(apart, values) for values in self.values.T]
        return np.column_stack(columns)

    def _mean(self, apart: Matrix, values: Matrix) -> Matrix:
        known = np.flatnonzero(~np.isnan(values))
        count = min(self.nearest, len(known))
        nearest = np.argpartition(apart[:, known], count - 1, axis=1)[:, :count]
        return np.asarray(values[known][nearest].mean(axis=1))


@dataclass(frozen=True, slots=True)
class Topics:
    """What was seen on the topics that a text is near, softly.

    Attributes:
        centres: of shape (draws, topics, columns), each of unit length, of several clusterings.
        values: the mean of what was seen on each topic, of shape (draws, topics, outputs).
        sharpness: of the softmax over a text's cosines with the centres.
    """

    centres: Array
    values: Matrix
    sharpness: float

    def __call__(self, rows: Matrix) -> Matrix:
        """The mean over the clusterings."""
        told = [
            softly(rows, centres, self.sharpness) @ values
            for centres, values in zip(self.centres, self.values, strict=True)
        ]
        return np.asarray(np.mean(told, axis=0))


@dataclass(frozen=True, slots=True)
class Trees:
    """Trees whose leaves add up; the nodes of all trees in one array, leaves leading to themselves.

    Attributes:
        feature: column that a node looks at.
        threshold: values up to and including it go left.
        left: node to go to.
        right: node to go to.
        value: what a leaf adds, of shape (nodes, outputs of a tree).
        roots: first node of each tree, of shape (sets, trees); -1 fills up. A set foretells all
            outputs, or each set one.
        base: of each output.
        depth: of the deepest tree.
    """

    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    roots: Array
    base: Matrix
    depth: int
    log_odds: bool

    def __call__(self, rows: Matrix) -> Matrix:
        """All trees of a set are walked down at once, a level at a time."""
        sums = [self._sum(rows, roots[roots >= 0]) for roots in self.roots]
        return _linked(np.hstack(sums) + self.base, log_odds=self.log_odds)

    def _sum(self, rows: Matrix, roots: Array) -> Matrix:
        node = np.broadcast_to(roots, (len(rows), len(roots)))
        each = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            low = rows[each, self.feature[node]] <= self.threshold[node]
            node = np.where(low, self.left[node], self.right[node])
        return np.asarray(self.value[node].sum(axis=1))


@dataclass(frozen=True, slots=True)
class Network:
    """A perceptron: layers of weights (inputs, outputs), rectified between them."""

    weights: Sequence[Matrix]
    intercepts: Sequence[Matrix]
    log_odds: bool

    def __call__(self, rows: Matrix) -> Matrix:
        """Layer by layer."""
        last = len(self.weights) - 1
        for at, (weights, intercepts) in enumerate(zip(self.weights, self.intercepts, strict=True)):
            rows = rows @ weights + intercepts
            if at < last:
                rows = np.maximum(rows, 0.0)
        return _linked(rows, log_odds=self.log_odds)


@dataclass(frozen=True, slots=True)
class Blend:
    """The weighted mean of what several heads foretell."""

    parts: Sequence[Head]
    shares: Matrix

    def __call__(self, rows: Matrix) -> Matrix:
        """Shares add up to 1."""
        told = [share * part(rows) for share, part in zip(self.shares, self.parts, strict=True)]
        return np.asarray(np.sum(told, axis=0))


@dataclass(frozen=True, slots=True)
class Columns:
    """A head that looks at some of the columns, from `first` up to but without `end`."""

    part: Sequence[Head]
    first: int
    end: int

    def __call__(self, rows: Matrix) -> Matrix:
        """What its one part says."""
        return self.part[0](rows[:, self.first : self.end])


KINDS: Mapping[str, Any] = {
    "linear": Linear,
    "neighbours": Neighbours,
    "topics": Topics,
    "trees": Trees,
    "network": Network,
    "blend": Blend,
    "columns": Columns,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def parts_of(head: Head, prefix: str = "head") -> tuple[dict[str, Any], dict[str, Array]]:
    """A head as settings for JSON and arrays by name, from which `head_of` makes it again."""
    settings: dict[str, Any] = {"kind": _NAMES[type(head)]}
    arrays: dict[str, Array] = {}
    for field in fields(head):  # type: ignore[arg-type]
        value, name = getattr(head, field.name), f"{prefix}.{field.name}"
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif isinstance(value, Sequence):
            settings[field.name] = [
                _part(item, f"{name}.{i}", arrays) for i, item in enumerate(value)
            ]
        else:
            settings[field.name] = value
    return settings, arrays


def head_of(settings: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str = "head") -> Head:
    """The head that `parts_of` took apart.

    Raises:
        ConfigError: a part is missing or of no known kind.
    """
    kind = KINDS.get(settings.get("kind", ""))
    if kind is None:
        raise ConfigError(f"there is no kind of head {settings.get('kind')!r}")
    values: dict[str, Any] = {}
    for field in fields(kind):
        name = f"{prefix}.{field.name}"
        if name in arrays:
            values[field.name] = arrays[name]
        elif field.name not in settings:
            raise ConfigError(f"the head lacks {name}")
        elif isinstance(some := settings[field.name], list):
            values[field.name] = [
                _whole(item, f"{name}.{i}", arrays) for i, item in enumerate(some)
            ]
        else:
            values[field.name] = some
    made: Head = kind(**values)
    return made


def distances(rows: Array, seen: Array) -> Matrix:
    """Squared Euclidean distances, of shape (rows, seen), as exact as `seen` is."""
    near = rows.astype(seen.dtype)
    apart = (near**2).sum(axis=1)[:, None] - 2.0 * (near @ seen.T) + (seen**2).sum(axis=1)
    return np.asarray(np.maximum(apart, 0.0))


def softly(rows: Array, centres: Array, sharpness: float) -> Matrix:
    """How much each row belongs to each centre, by their cosines; of shape (rows, centres)."""
    near = sharpness * (rows.astype(centres.dtype) @ centres.T)
    share = np.exp(near - near.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True), dtype=np.float64)


def sigmoid(log_odds: Matrix) -> Matrix:
    """The probabilities that belong to log-odds, whatever their size."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * log_odds)))


def _part(item: Any, name: str, arrays: dict[str, Array]) -> Any:
    if isinstance(item, np.ndarray):
        arrays[name] = item
        return None
    settings, more = parts_of(item, name)
    arrays |= more
    return settings


def _whole(item: Any, name: str, arrays: Mapping[str, Array]) -> Any:
    if item is None:
        if name not in arrays:
            raise ConfigError(f"the head lacks {name}")
        return arrays[name]
    return head_of(item, arrays, name)


def _linked(values: Matrix, *, log_odds: bool) -> Matrix:
    return sigmoid(values) if log_odds else np.asarray(values)
