"""cascade judges: from stored outcomes to a panel that can be trusted, and what it is worth."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console

from evals.commands.early_commit import commit
from evals.commands.judges_show import manual, rank, show
from evals.commands.panels import (
    certificates,
    judge_option,
    judged,
    members_in_force,
    model_in,
    outcomes_option,
    panel_of,
    prompts_option,
    split,
)
from evals.files import require_folder, write_whole
from evals.guarantee import RISKS, Certificate
from evals.outcomes import Outcomes
from evals.outcomes_lines import read
from evals.panel_choice import KINDS
from evals.panel_fit import FittedPanel, JudgedRow, fit_panel
from evals.panel_measures import at_threshold, measured, scored, threshold
from evals.panel_plot import draw, require_plot
from evals.panel_report import certified, on_screen, readable, report
from evals.panel_rows import digest
from judges.fitted import Artifact, Manifest, model_of
from judges.panel import gives_scores
from serving.commands.options import config_option, json_option
from serving.commands.options import load as load_config
from serving.config import ConfigFile


@click.group()
def judges() -> None:
    """Fit a panel to outcomes, certify its threshold, and say what judges are worth."""


for command in (rank, show, manual, commit):
    judges.add_command(command)


@judges.command()
@config_option
@judge_option
@outcomes_option
@prompts_option
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="auto",
    show_default=True,
    help="The kind of model; auto takes what does best on fit rows that it has not seen.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the artifact goes; name it in the panel's `artifact`.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where a picture goes (.png): reliability, and what escalating gains.",
)
def fit(  # noqa: PLR0917 - click passes options by name
    path: Path | None,
    judge: str,
    outcomes_file: Path,
    prompts_file: Path,
    kind: str,
    out: Path,
    plot: Path | None,
) -> None:
    """Fit the panel's model on the outcomes' fit rows, and measure it on their test rows."""
    console = Console()
    require_folder(out)
    if plot is not None:
        require_plot(plot)
    file, outcomes = load_config(path), read(outcomes_file)
    members = panel_of(file, judge).members
    with console.status("looking at the answers"):
        rows = judged(members, outcomes, prompts_file)
    chosen, tested = split(rows, "fit"), split(rows, "test")
    tiers = list(outcomes.manifest.tiers)
    with console.status(f"fitting on {len(chosen)} answers"):
        aside = [member.name for member in members if not gives_scores(member)]
        fitted = fit_panel(chosen, tiers, kind=kind, aside=aside)
    artifact = _artifact(fitted, _manifest(file, judge, outcomes, rows))
    model = model_of(artifact)
    with console.status(f"measuring on {len(tested)} answers"):
        scores = scored(model, tested, chosen)
        metrics = measured(model, tested, chosen)
        metrics["ladder"] = at_threshold(scores, threshold(fitted.held_out, chosen, tiers))
    artifact = _artifact(fitted, artifact.manifest.model_copy(update={"metrics": metrics}))
    write_whole(out, readable(artifact))
    if plot is not None:
        draw(plot, scores)
    on_screen(console, report(metrics))
    console.print(f"{out}: {len(fitted.features)} features, {out.stat().st_size // 1024} KiB")


@judges.command(name="certify")
@config_option
@judge_option
@outcomes_option
@prompts_option
@click.option("--alpha", type=float, default=0.05, show_default=True, help="The risk allowed.")
@click.option(
    "--delta", type=float, default=0.1, show_default=True, help="The chance that it is exceeded."
)
@click.option("--risk", type=click.Choice(list(RISKS)), default=None, help="Only this risk.")
@json_option
def certify_(  # noqa: PLR0917 - click passes options by name
    path: Path | None,
    judge: str,
    outcomes_file: Path,
    prompts_file: Path,
    alpha: float,
    delta: float,
    risk: str | None,
    as_json: bool,
) -> None:
    """Find the loosest accept_at whose risk is at most alpha, with probability 1 - delta.

    It is tested on the outcomes' calibrate rows, which nothing was fitted on.
    """
    file, outcomes = load_config(path), read(outcomes_file)
    model = model_in(file, judge)
    rows = judged(panel_of(file, judge).members, outcomes, prompts_file)
    found = certificates(model, rows, alpha, delta, tuple(RISKS) if risk is None else (risk,))
    if as_json:
        click.echo(orjson.dumps([_plain(each) for each in found]).decode())
        return
    on_screen(Console(), [certified(found)])


def _manifest(
    file: ConfigFile, judge: str, outcomes: Outcomes, rows: Sequence[JudgedRow]
) -> Manifest:
    tiers = outcomes.manifest.tiers
    return Manifest(
        judged=next(iter(tiers)),
        models={tier: each.model for tier, each in tiers.items()},
        members=members_in_force(file, judge),
        data=digest(rows),
        rows={name: len(split(rows, name)) for name in ("fit", "calibrate", "test")},
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _artifact(fitted: FittedPanel, manifest: Manifest) -> Artifact:
    return Artifact(
        kind="panel_model", manifest=manifest, features=fitted.features, heads=fitted.heads
    )


def _plain(found: Certificate) -> dict[str, Any]:
    return {
        "risk": found.risk,
        "alpha": found.alpha,
        "delta": found.delta,
        "threshold": found.threshold,
        "acceptance": found.acceptance,
        "bound": found.bound,
        "labels": found.labels,
        "more_labels": found.more,
        "reason": found.reason,
    }
