"""One HTML page of a frontier that works without a network: the picture, then all tables."""

from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evals.files import write_whole
from evals.frontier.drawn import Line, lines
from evals.frontier.known import FrontierError
from evals.frontier.measure import Frontier
from evals.frontier.policies import RANDOM
from evals.frontier.replayed import ORACLE
from evals.frontier.report import report
from evals.runs.html import Markup, Section, document

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

_DASHES: Final = {RANDOM: "dot", ORACLE: "dash"}
_DENSE: Final = 40
"""Settings from which on marks would hide the line; all can be hovered over anyway."""
_COLOURS: Final = {RANDOM: "#555555", ORACLE: "#999999", "utility": "#000000"}


def require_plotly() -> None:
    """Say now, before the work, that the page cannot be drawn.

    Raises:
        FrontierError: plotly is not installed.
    """
    if find_spec("plotly") is None:
        raise FrontierError("the page needs plotly: pip install 'cascade-router[evals]'")


def write(path: Path, frontier: Frontier) -> None:
    """Write the page.

    Raises:
        FrontierError: plotly is not installed.
        ResultFileError: it cannot be written; an old file is untouched.
    """
    write_whole(path, page(frontier))


def page(frontier: Frontier) -> str:
    """The whole page; the same frontier gives the same bytes.

    Raises:
        FrontierError: plotly is not installed.
    """
    parts = [Markup(plot_html(frontier)), *report(frontier)]
    title = f"Cascade: {frontier.source}"
    return document(title, [Section("Quality against cost", parts)], head=script())


def script() -> str:
    """Plotly itself, for the head of a page whose plots come from `plot_html`."""
    require_plotly()
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - only drawing pays for it

    return f"<script>{get_plotlyjs()}</script>"


def plot_html(frontier: Frontier, name: str = "frontier") -> str:
    """The picture, to stand in a page that has plotly already.

    Args:
        frontier: what is drawn.
        name: the element's id, unlike that of any other on the page.

    Raises:
        FrontierError: plotly is not installed.
    """
    drawn: str = figure(frontier).to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True},
    )
    return drawn


def figure(frontier: Frontier) -> "Figure":
    """Each policy's curve on the test rows, its settings to be seen by hovering.

    Raises:
        FrontierError: plotly is not installed.
    """
    require_plotly()
    from plotly.graph_objects import Figure  # noqa: PLC0415 - only drawing pays for it

    made = Figure([*map(_curve(frontier.tiers), lines(frontier)), _chosen(frontier)])
    for tier, each in frontier.singles.items():
        made.add_annotation(x=each["cost"].value, y=each["quality"].value, text=escape(tier), ay=30)
    made.update_layout(
        template="plotly_white",
        height=560,
        margin={"t": 20},
        xaxis={"title": "dollars an answer"},
        yaxis={"title": "quality"},
        hoverlabel={"align": "left"},
    )
    return made


def _curve(tiers: Sequence[str]) -> Callable[[Line], "Scatter"]:
    def scatter(line: Line) -> "Scatter":
        from plotly.graph_objects import Scatter  # noqa: PLC0415

        curve = line.curve
        told = "".join(
            f"<br>{escape(tier)}: %{{customdata[{at}]:.1%}}" for at, tier in enumerate(tiers, 1)
        )
        data = [
            [f"{knob:.6g}", *row]
            for knob, row in zip(curve.knob, curve.shares.tolist(), strict=True)
        ]
        return Scatter(
            x=curve.cost.tolist(),
            y=curve.quality.tolist(),
            customdata=data,
            mode="lines" if len(curve) > _DENSE else "lines+markers",
            marker={"size": 4},
            line={"dash": _DASHES.get(line.name, "solid"), "color": _COLOURS.get(line.name)},
            name=escape(line.name),
            hovertemplate=(
                f"<b>{escape(line.name)}</b><br>{escape(line.knob)}: %{{customdata[0]}}"
                f"<br>quality: %{{y:.2%}}<br>dollars: %{{x:.4g}}{told}<extra></extra>"
            ),
        )

    return scatter


def _chosen(frontier: Frontier) -> "Scatter":
    """The settings that were chosen for the targets."""
    from plotly.graph_objects import Scatter  # noqa: PLC0415

    found = [
        (setting, name)
        for name, each in frontier.results.items()
        for setting in each.settings
        if setting.measured
    ]
    best = frontier.headroom.best
    return Scatter(
        x=[setting.measured["cost"].value for setting, _ in found],
        y=[setting.measured["quality"].value for setting, _ in found],
        text=[
            f"<b>{escape(name)}</b><br>chosen for {setting.target:.0%} of {escape(best)}'s quality"
            f"<br>setting: {setting.knob:.6g}"
            for setting, name in found
        ],
        mode="markers",
        marker={"symbol": "diamond-open", "size": 9, "color": "#333333"},
        name="chosen settings",
        hovertemplate="%{text}<br>quality: %{y:.2%}<br>dollars: %{x:.4g}<extra></extra>",
        visible="legendonly",
    )
