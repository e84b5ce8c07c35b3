"""A picture of quality against cost, by matplotlib."""

from pathlib import Path
from typing import Final

from evals.frontier.drawn import lines
from evals.frontier.measure import Frontier
from evals.frontier.policies import RANDOM
from evals.frontier.replayed import ORACLE
from evals.panel_plot import save

_STYLES: Final = {RANDOM: ("0.3", ":"), ORACLE: ("0.6", "--"), "utility": ("black", "-")}


def draw(path: Path, frontier: Frontier) -> None:
    """Write a PNG: each policy's curve on the test rows, and each tier alone.

    Raises:
        ResultFileError: it cannot be written; an old file is untouched.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - only drawing pays for it

    figure = Figure(figsize=(8, 5), layout="constrained", dpi=100)
    axes = figure.subplots()
    for line in lines(frontier):
        colour, style = _STYLES.get(line.name, (None, "-"))
        axes.plot(
            line.curve.cost,
            line.curve.quality,
            color=colour,
            linestyle=style,
            linewidth=1.5,
            label=line.name,
        )
    for tier, each in frontier.singles.items():
        point = (each["cost"].value, each["quality"].value)
        axes.plot(*point, marker="s", color="black")
        axes.annotate(tier, point, textcoords="offset points", xytext=(6, -12))
    rows = frontier.rows["test"]
    axes.set(title=f"{frontier.source}: {rows:,} test rows", xlabel="$ an answer", ylabel="quality")
    axes.grid(visible=True, color="0.9")
    axes.legend(loc="lower right", fontsize="small")
    save(figure, path)
