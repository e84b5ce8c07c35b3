"""A picture of simulated conversations: the frontiers of one cell, and the ratios of all."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evals.panel_plot import save
from evals.simulate.conversation_ratios import RIVALS, TOO_DEAR, Compared
from evals.simulate.conversations import NAIVE, OURS, PRICED, TIERS
from evals.simulate.frontier import hull

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = {"blind": "tab:blue", "no rule": "tab:orange", NAIVE: "tab:green"}


def draw(path: Path, some: Sequence[Compared], middle: Compared) -> None:
    """Write a PNG: the frontiers of one cell on the left, the ratios of all on the right.

    Raises:
        ResultFileError: it cannot be written; an old file is untouched.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - only drawing pays for it

    figure = Figure(figsize=(11, 4.5), layout="constrained", dpi=100)
    left, right = figure.subplots(1, 2)
    _frontiers(left, middle)
    _ratios(right, some)
    save(figure, path)


def _frontiers(axes: "Axes", each: Compared) -> None:
    for name, points in each.frontiers.items():
        line = hull(points)
        axes.plot(
            [1000 * point.dollars for point in line],
            [point.quality for point in line],
            color="black" if name in {OURS, NAIVE} else None,
            linestyle=_line(name),
            marker="s" if name == TIERS else ".",
            label=name,
        )
    axes.set(title=each.cell.name, xlabel="$ a thousand turns", ylabel="acceptable answers")
    axes.legend(loc="lower right", fontsize="small")


def _line(name: str) -> str:
    if name == TIERS:
        return ""
    return {OURS: "-", NAIVE: "--"}.get(name, "-." if name in PRICED else ":")


def _ratios(axes: "Axes", some: Sequence[Compared]) -> None:
    """Each cell's ratio, from the smallest."""
    for name in RIVALS:
        values = sorted(each.ratio(name) for each in some)
        axes.plot(range(1, len(values) + 1), values, color=_COLOURS[name], label=name)
    axes.axhline(1.0, color="0.6", linestyle=":")
    axes.axhline(TOO_DEAR, color="0.8", linestyle=":")
    axes.set(
        title="Our cost at equal quality over that of the best rival",
        xlabel="cells, by ratio",
        ylabel="ratio",
    )
    axes.legend(title="rivals")
