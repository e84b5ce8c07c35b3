"""A picture of a fitted panel: can its scores be believed, and does acting on them pay."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evals.escalation import Scored, accuracy
from evals.files import ResultFileError, require_folder
from evals.metrics import mean, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS: Final = 8
STEPS: Final = 50
STYLES: Final = {
    "oracle": ("0.6", ":"),
    "uplift": ("tab:blue", "-"),
    "doubt": ("tab:orange", "--"),
    "length": ("tab:green", "-."),
    "random": ("0.3", ":"),
}


def require_plot(path: Path) -> None:
    """Say now, before the work, that the picture cannot be written.

    Raises:
        ResultFileError: matplotlib or the folder is missing, or it is no .png.
    """
    if find_spec("matplotlib") is None:
        raise ResultFileError(
            f"{path}: drawing needs matplotlib: pip install 'cascade-router[fit]'"
        )
    if path.suffix != ".png":
        raise ResultFileError(f"{path}: cannot be drawn: the name must end in .png")
    require_folder(path)


def draw(path: Path, rows: Sequence[Scored]) -> None:
    """Write a PNG: reliability on the left, what escalating gains on the right.

    Raises:
        ResultFileError: it cannot be written; an old file is untouched.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - only drawing pays for it

    figure = Figure(figsize=(9, 4), layout="constrained", dpi=100)
    left, right = figure.subplots(1, 2)
    _reliability(left, rows)
    _gain(right, rows)
    save(figure, path)


def save(figure: "Figure", path: Path) -> None:
    """Write a drawn figure as a PNG, at once.

    Raises:
        ResultFileError: it cannot be written; an old file is untouched.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        figure.savefig(beside, format="png", metadata={"Software": None})
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise ResultFileError(f"{path}: cannot be written: {error.strerror or error}") from None


def _reliability(axes: "Axes", rows: Sequence[Scored]) -> None:
    """Bins of about as many answers each, with Wilson's interval of the share that is right."""
    ordered = sorted(rows, key=lambda row: row.small)
    bins = [ordered[at * len(rows) // BINS : (at + 1) * len(rows) // BINS] for at in range(BINS)]
    bins = [some for some in bins if some]
    said = [mean([row.small for row in some]) for some in bins]
    rates = [mean([float(row.small_right) for row in some]) for some in bins]
    ends = [wilson(sum(row.small_right for row in some), len(some)) for some in bins]
    below = [rate - low for rate, (low, _) in zip(rates, ends, strict=True)]
    above = [high - rate for rate, (_, high) in zip(rates, ends, strict=True)]
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":")
    axes.errorbar(said, rates, yerr=[below, above], fmt="o-", color="tab:blue", capsize=3)
    axes.set(
        title=f"Reliability ({len(rows)} answers)",
        xlabel="the panel's score",
        ylabel="share that is right",
        xlim=(0, 1),
        ylim=(0, 1),
    )


def _gain(axes: "Axes", rows: Sequence[Scored]) -> None:
    shares = [step / STEPS for step in range(STEPS + 1)]
    for order, (colour, line) in STYLES.items():
        values = [accuracy(rows, order, share) for share in shares]
        axes.plot(shares, values, color=colour, linestyle=line, label=order)
    axes.set(
        title="What escalating gains",
        xlabel="share sent up",
        ylabel="share that is right",
        xlim=(0, 1),
    )
    axes.legend(title="sent up by", loc="lower right")
