"""What the page's charts show, as plain numbers: the browser draws them, a table repeats them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from serving.dashboard import formats

Unit = Literal["usd", "share", "ms", "count"]
Axis = Literal["time", "score"]
Mark = Literal["line", "dashes", "bar", "points"]

WRITTEN: Final = {
    "usd": lambda value: formats.money(None if value is None else Decimal(str(value))),
    "share": formats.share,
    "ms": formats.milliseconds,
    "count": formats.count,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series.

    Attributes:
        values: one at each place; None where there is none.
        role: which colour it has: "accent", "muted", "good", "bad", or "tier-0" and so on.
        mark: how it is drawn.
        notes: what a place's point says besides its value; empty for nothing.
    """

    name: str
    values: Sequence[float | None]
    role: str = "accent"
    mark: Mark = "line"
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One chart.

    Attributes:
        name: tells it from the page's others.
        title: its heading.
        places: seconds since the epoch, or scores.
        step: how far apart places are.
        stacked: bars stand on each other.
        diagonal: where a calibrated judge would be is drawn as well.
    """

    name: str
    title: str
    axis: Axis
    places: Sequence[float]
    lines: Sequence[Line]
    unit: Unit
    step: float = 0.0
    stacked: bool = False
    diagonal: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return all(value is None for line in self.lines for value in line.values)

    def data(self) -> dict[str, Any]:
        """For the script that draws it."""
        return {
            "axis": self.axis,
            "unit": self.unit,
            "step": self.step,
            "stacked": self.stacked,
            "diagonal": self.diagonal,
            "places": list(self.places),
            "lines": [
                {
                    "name": line.name,
                    "values": list(line.values),
                    "role": line.role,
                    "mark": line.mark,
                    "notes": list(line.notes),
                }
                for line in self.lines
            ],
        }

    def rows(self) -> list[tuple[float | str, list[str]]]:
        """For the table: each place and what every line has there."""
        write = WRITTEN[self.unit]
        rows = []
        for i, place in enumerate(self.places):
            shown = place if self.axis == "time" else f"{place:.2f}"
            rows.append((shown, [write(line.values[i]) for line in self.lines]))
        return rows
