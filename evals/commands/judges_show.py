"""cascade judges rank | show | manual: what judges are worth, on the screen or in a manual."""

import asyncio
import contextlib
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from evals.commands.panels import (
    built,
    certificates,
    judge_option,
    judged,
    model_in,
    outcomes_option,
    panel_of,
    prompts_option,
)
from evals.datasets import load
from evals.files import write_whole
from evals.outcomes import OutcomesError
from evals.outcomes_lines import read
from evals.panel_measures import ranked
from evals.panel_report import Printed, as_markdown, certified, on_screen, ranks, report
from evals.panel_rows import stored, verdicts
from judges.panel import PanelJudge, gives_scores
from serving.commands.options import config_option
from serving.commands.options import load as load_config

PRINTING: Final = ("rank", "show")
BLOCK: Final = re.compile(
    r"(?P<mark><!-- cascade judges (?P<command>[^>]+?) -->\n)(?P<printed>.*?)(?P<end><!-- end -->)",
    re.DOTALL,
)
"""A place in a manual that holds what a command prints."""
markdown_option: Callable[[Any], Any] = click.option(
    "--markdown", is_flag=True, help="Print Markdown."
)


@click.command()
@config_option
@judge_option
@outcomes_option
@prompts_option
@click.option("--alpha", type=float, default=0.05, show_default=True, help="The risk allowed.")
@click.option(
    "--delta", type=float, default=0.1, show_default=True, help="The chance that it is exceeded."
)
@markdown_option
def show(  # noqa: PLR0917 - click passes options by name
    path: Path | None,
    judge: str,
    outcomes_file: Path,
    prompts_file: Path,
    alpha: float,
    delta: float,
    markdown: bool,
) -> None:
    """Say what a panel's artifact was measured at, and what can be certified of it."""
    file = load_config(path)
    model = model_in(file, judge)
    rows = judged(panel_of(file, judge).members, read(outcomes_file), prompts_file)
    found = certificates(model, rows, alpha, delta)
    _print([*report(model.manifest.metrics), certified(found)], markdown)


@click.command()
@config_option
@outcomes_option
@prompts_option
@click.option("--split", default="test", show_default=True, help="Of the prompts; all for all.")
@markdown_option
def rank(
    path: Path | None, outcomes_file: Path, prompts_file: Path, split: str, markdown: bool
) -> None:
    """Say how well each judge of a configuration tells right answers from wrong by itself.

    Panels are left out: `fit` measures them. What judges that call a model said is in the outcomes.
    """
    file, outcomes = load_config(path), read(outcomes_file)
    tier = next(iter(outcomes.manifest.tiers))
    prompts = {p.id: p for p in load(prompts_file) if split in {"all", p.split}}
    lines = []
    for name, judge in built(file).items():
        if isinstance(judge, PanelJudge) or not gives_scores(judge):
            continue
        try:
            (asked,) = stored([judge], outcomes, tier)
        except OutcomesError:
            continue
        told = asyncio.run(verdicts(outcomes, prompts, asked, tier))
        lines.append((name, ranked(told)))
    _print([ranks(lines, split)], markdown)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.pass_context
def manual(context: click.Context, file: Path) -> None:
    """Write anew what FILE says of judges: what its `<!-- cascade judges ... -->` marks print."""
    group = context.parent.command if context.parent else context.command

    def printed(found: re.Match[str]) -> str:
        return f"{found['mark']}{said(group, found['command'])}{found['end']}"

    text, count = BLOCK.subn(printed, file.read_text(encoding="utf-8"))
    write_whole(file, text)
    click.echo(f"{file}: {count} places")


def said(group: click.Command, command: str) -> str:
    """What a command of the group prints as Markdown.

    Raises:
        ClickException: it is none that only prints.
    """
    name, *rest = shlex.split(command)
    if name not in PRINTING:
        raise click.ClickException(f"cascade judges {name} is not one of {', '.join(PRINTING)}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        group.main([name, *rest, "--markdown"], standalone_mode=False)
    return out.getvalue()


def _print(parts: list[Printed | str], markdown: bool) -> None:
    if markdown:
        click.echo(as_markdown(parts))
    else:
        on_screen(Console(), parts)
