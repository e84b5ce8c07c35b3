"""What the commands about panels share: their options, and what they read."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cascade.errors import ConfigError
from cascade.protocols import Judge
from evals.datasets import TASKS, load
from evals.guarantee import GRID, RISKS, Certificate, Labelled, certify, opening
from evals.outcomes import EMBEDDED, Outcomes
from evals.panel_fit import JudgedRow
from evals.panel_rows import judged_rows, stored
from judges.fitted import PanelModel, load_model
from judges.panel import PanelJudge
from serving.config import ConfigFile
from serving.wiring import Wiring, settings_of

outcomes_option = click.option(
    "--outcomes",
    "outcomes_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=EMBEDDED,
    help="What `python -m evals collect` wrote; default the embedded models' answers.",
)
prompts_option = click.option(
    "--prompts",
    "prompts_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=TASKS,
    help="The prompt set that the outcomes answer.",
)
judge_option = click.option("--judge", default="sound", help="The panel, by its name.")


def certificates(
    model: PanelModel,
    rows: Sequence[JudgedRow],
    alpha: float,
    delta: float,
    risks: Sequence[str] = tuple(RISKS),
) -> list[Certificate]:
    """One for each risk, from the calibrate rows; the fit rows say where to begin.

    Raises:
        CertifyError: there are too few rows.
    """
    labels = [_labelled(model, row) for row in split(rows, "calibrate")]
    before = [_labelled(model, row).score for row in split(rows, "fit")]
    found = []
    for risk in risks:
        grid = opening(before, len(labels), alpha, delta) if risk == "selective" else GRID
        found.append(certify(labels, risk=risk, alpha=alpha, delta=delta, grid=grid))
    return found


def split(rows: Sequence[JudgedRow], name: str) -> list[JudgedRow]:
    """The rows of a split."""
    return [row for row in rows if row.split == name]


def judged(members: Sequence[Judge], outcomes: Outcomes, prompts_file: Path) -> list[JudgedRow]:
    """The stored answers of the lowest tier as the members see them.

    Raises:
        OutcomesError: the outcomes do not go with the prompts, or lack a member's verdicts.
        JudgeError: a member failed; says on which prompt.
    """
    tier = next(iter(outcomes.manifest.tiers))
    prompts = {prompt.id: prompt for prompt in load(prompts_file)}
    return asyncio.run(judged_rows(outcomes, prompts, stored(members, outcomes, tier), tier))


def built(file: ConfigFile) -> Mapping[str, Judge]:
    """The judges of a configuration by name, panels without the artifacts that are to be made.

    Raises:
        ConfigError: one of them cannot be built.
    """
    judges = {name: entry.model_copy(deep=True) for name, entry in file.config.judges.items()}
    for entry in judges.values():
        if entry.type == "panel":
            (entry.model_extra or {}).pop("artifact", None)
    config = file.config.model_copy(update={"judges": judges})
    try:
        return Wiring(config, file.path.parent).snapshot().judges
    except ConfigError as error:
        raise file.explain(error) from None


def panel_of(file: ConfigFile, judge: str) -> PanelJudge:
    """The panel of that name, without its artifact.

    Raises:
        ConfigError: there is none, or it cannot be built.
    """
    entry = file.config.judges.get(judge)
    if entry is None or entry.type != "panel":
        raise ConfigError(f"{file.path}: there is no panel {judge!r} among the judges")
    panel = built(file)[judge]
    if not isinstance(panel, PanelJudge):
        raise ConfigError(f"{file.path}: judge {judge!r} is calibrated; a panel's model is already")
    return panel


def model_in(file: ConfigFile, judge: str) -> PanelModel:
    """The model that the panel's artifact holds.

    Raises:
        ConfigError: it names none, or one that cannot be used.
    """
    entry = file.config.judges.get(judge)
    artifact = entry.options.get("artifact") if entry else None
    if not artifact:
        raise ConfigError(
            f"{file.path}: judge {judge!r} has no artifact; `cascade judges fit` makes one"
        )
    return load_model(file.path.parent / artifact)


def members_in_force(file: ConfigFile, judge: str) -> dict[str, dict[str, Any]]:
    """Type and options of each member, defaults included."""
    known = file.config.judges
    return {name: settings_of(known[name]) for name in known[judge].members or ()}


def _labelled(model: PanelModel, row: JudgedRow) -> Labelled:
    judged_tier, strong = model.manifest.judged, list(model.heads)[-1]
    cannot_tell = model.missing(row.features)
    return Labelled(
        score=None if cannot_tell else model(row.features)[judged_tier],
        right=row.right[judged_tier],
        strong_right=row.right[strong],
    )
