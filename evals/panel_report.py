"""What `cascade judges` says of a fitted panel: on the screen, in its file, in the manual."""

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table

from evals.guarantee import Certificate
from judges.fitted import Artifact

_NUMBERS: Final = re.compile(r"\[\s+((?:-?[\d.]+(?:e[-+]?\d+)?,\s+)*-?[\d.]+(?:e[-+]?\d+)?)\s+\]")
WIDTH: Final = 100
ALONE: Final = "length alone"


def readable(artifact: Artifact) -> str:
    """An artifact as JSON to be read: indented, a list of numbers on one line."""
    text = json.dumps(artifact.model_dump(exclude_defaults=True), indent=1)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


class Printed(NamedTuple):
    """A table: its title, the heads of its columns, and its rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def on_screen(console: Console, parts: Sequence[Printed | str]) -> None:
    """Print tables and sentences."""
    for part in parts:
        if isinstance(part, str):
            console.print(part, highlight=False)
            continue
        table = Table(title=part.title)
        for name in part.head:
            table.add_column(name)
        for cells in part.rows:
            table.add_row(*cells)
        console.print(table)


def as_markdown(parts: Sequence[Printed | str]) -> str:
    """The same for a manual."""
    return "\n\n".join(
        "\n".join(textwrap.wrap(part, WIDTH)) if isinstance(part, str) else _markdown(part)
        for part in parts
    )


def _markdown(part: Printed) -> str:
    lines = [part.head, ["---"] * len(part.head), *part.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def report(metrics: Mapping[str, Any]) -> list[Printed | str]:
    """All that was measured of a panel."""
    right = ", ".join(f"{tier} {rate:.1%}" for tier, rate in metrics["right"].items())
    return [
        f"{metrics['n']} answers of {metrics['groups']} groups, nothing fitted on; right: {right}.",
        ranking(metrics),
        gains(metrics),
        calibration_sentence(metrics),
        ladder_sentence(metrics),
    ]


def ranking(metrics: Mapping[str, Any]) -> Printed:
    """How well each judge, and the panel, tells right from wrong."""
    lines = [
        (name, str(each["n"]), *_with_ends(each["auc"]))
        for name, each in metrics["auc_of_members"].items()
    ]
    lines.append((ALONE, str(metrics["n"]), *_with_ends(metrics["auc_length_only"])))
    lines.append(("the panel", str(metrics["n"]), *_with_ends(metrics["auc"])))
    return Printed("telling right from wrong", ("judge", "answers", "AUC", "95 %"), lines)


def gains(metrics: Mapping[str, Any]) -> Printed:
    """What is right when a share is sent up, by whom."""
    head = ("sent up by", *(f"right at {share:.0%}" for share in metrics["escalated"]))
    lines = [
        (order, *(f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in values))
        for order, values in metrics["accuracy"].items()
    ]
    lines += [
        (f"uplift over {other}", *(f"{low:+.3f} to {high:+.3f}" for low, high in ends))
        for other, ends in metrics["uplift_over"].items()
    ]
    return Printed("what escalating gains", head, lines)


def ranks(lines: Sequence[tuple[str, Mapping[str, Any]]], split: str) -> Printed:
    """How well judges do by themselves."""
    rows = [(name, str(each["n"]), *_with_ends(each["auc"])) for name, each in lines]
    return Printed(f"{split} prompts", ("judge", "answers", "AUC", "95 %"), rows)


def certified(found: Sequence[Certificate]) -> Printed:
    """What can be guaranteed, or how many labels it would take."""
    title = f"risk at most {found[0].alpha:g} with probability {1 - found[0].delta:g}"
    head = ("risk", "accept_at", "accepted", "bound", "labels", "more needed", "seen")
    return Printed(title, head, [_certificate(each) for each in found])


def _certificate(each: Certificate) -> Sequence[str]:
    sure = each.threshold is not None
    return (
        each.risk,
        f"{each.threshold:g}" if sure else "not certified",
        f"{each.acceptance:.1%}" if sure else "",
        f"{each.bound:.4f}" if each.bound is not None else "",
        str(each.labels),
        {None: "no number will do", 0: ""}.get(each.more, f"about {each.more}"),
        each.reason,
    )


def calibration_sentence(metrics: Mapping[str, Any]) -> str:
    """The calibration error, and what of it is chance."""
    usual, most = metrics["calibration_noise"]
    return (
        f"Calibration error {metrics['calibration_error']:.3f}, before calibration "
        f"{metrics['calibration_error_before']:.3f}; perfect scores would show {usual:.3f} on as "
        f"many answers, and in one of twenty cases more than {most:.3f}."
    )


def ladder_sentence(metrics: Mapping[str, Any]) -> str:
    """The threshold that was chosen, and what a ladder does with it."""
    ladder = metrics["ladder"]
    right, lead = ladder["right"], ladder["over_random"]
    return (
        f"With accept_at: {ladder['accept_at']:g}, chosen on the fit rows, {ladder['sent_up']:.1%} "
        f"go up and {right[0]:.3f} ({right[1]:.3f} to {right[2]:.3f}) are right: {lead[0]:+.3f} "
        f"({lead[1]:+.3f} to {lead[2]:+.3f}) against as many at random."
    )


def _with_ends(values: Sequence[float]) -> tuple[str, str]:
    area, low, high = values
    return f"{area:.3f}", f"{low:.3f} to {high:.3f}"
