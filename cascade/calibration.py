"""Applies a fitted monotone map from a judge's raw score to a probability.

A monotone map never changes which of two answers ranks higher; it makes scores of different judges
comparable and thresholds mean the same on both. Fitting lives in evals; here it is only applied.
"""

import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cascade.errors import ConfigError

MIN_KNOTS = 2


@dataclass(frozen=True, slots=True)
class MonotoneMap:
    """Piecewise linear through (x, y), flat outside; both non-decreasing, x strictly.

    Attributes:
        fitted_for: the judge's type and options whose scores it was fitted on, as far as stated.
    """

    x: Sequence[float]
    y: Sequence[float]
    fitted_for: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.x) < MIN_KNOTS:
            raise ConfigError("a monotone map needs as many x as y, at least two")
        if not all(math.isfinite(value) for value in (*self.x, *self.y)):
            raise ConfigError("x and y of a monotone map must be finite")
        if any(b <= a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ConfigError("x of a monotone map must increase")
        if any(b < a for a, b in zip(self.y, self.y[1:], strict=False)):
            raise ConfigError("y of a monotone map must not decrease")
        if not (self.y[0] >= 0.0 and self.y[-1] <= 1.0):
            raise ConfigError("y of a monotone map must lie in [0, 1]")

    def __call__(self, score: float) -> float:
        """The probability that belongs to a raw score."""
        right = bisect_right(self.x, score)
        if right == 0:
            return self.y[0]
        if right == len(self.x):
            return self.y[-1]
        x0, x1, y0, y1 = self.x[right - 1], self.x[right], self.y[right - 1], self.y[right]
        return y0 + (y1 - y0) * (score - x0) / (x1 - x0)


def load_map(path: Path) -> MonotoneMap:
    """Read {"kind": "monotone_map", "x": [...], "y": [...], "fitted_for": {...}}.

    Raises:
        ConfigError: the file is missing or is not such a map.
    """
    try:
        fitted = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such calibration file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: not JSON: {error}") from None
    if not isinstance(fitted, dict) or fitted.get("kind") != "monotone_map":
        raise ConfigError(f'{path}: "kind" is not "monotone_map"')
    try:
        x, y = [float(x) for x in fitted["x"]], [float(y) for y in fitted["y"]]
        return MonotoneMap(x, y, dict(fitted.get("fitted_for") or {}))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path}: x and y must be lists of numbers ({error})") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}") from None
