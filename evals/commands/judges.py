"""cascade judges fit | certify: from stored outcomes to a panel that can be trusted."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from cascade.errors import ConfigError
from evals.datasets import TASKS, load
from evals.escalation import Scored, accuracy, calibration_error, lead
from evals.files import require_folder, write_whole
from evals.guarantee import GRID, RISKS, Certificate, Labelled, certify, opening
from evals.metrics import auroc, bootstrap
from evals.outcomes import EMBEDDED, Outcomes
from evals.outcomes_lines import read
from evals.panel_fit import KINDS, JudgedRow, fit_heads
from evals.panel_rows import digest, judged_rows, stored
from judges.fitted import Artifact, Manifest, PanelModel, load_model, model_of
from judges.panel import PanelJudge
from serving.commands.options import config_option, json_option
from serving.commands.options import load as load_config
from serving.config import ConfigFile
from serving.wiring import Wiring, settings_of

SHARES = (0.2, 0.4, 0.6)
SCORE = ".score"
ORDERS = ("random", "length", "doubt", "uplift", "oracle")

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


@click.group()
def judges() -> None:
    """Fit a panel to outcomes, and certify its threshold."""


@judges.command()
@config_option
@judge_option
@outcomes_option
@prompts_option
@click.option("--kind", type=click.Choice(KINDS), default="blend", help="The kind of model.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Where the artifact goes; name it in the panel's `artifact`.",
)
def fit(  # noqa: PLR0917 - click passes options by name
    path: Path | None, judge: str, outcomes_file: Path, prompts_file: Path, kind: str, out: Path
) -> None:
    """Fit the panel's model on the outcomes' fit rows, and measure it on their test rows."""
    console = Console()
    require_folder(out)
    file, outcomes = load_config(path), read(outcomes_file)
    with console.status("looking at the answers"):
        rows = _rows(file, judge, outcomes, prompts_file)
    chosen = [row for row in rows if row.split == "fit"]
    tiers = list(outcomes.manifest.tiers)
    with console.status(f"fitting on {len(chosen)} answers"):
        features, heads = fit_heads(chosen, tiers, kind=kind)
    manifest = Manifest(
        judged=tiers[0],
        models={tier: each.model for tier, each in outcomes.manifest.tiers.items()},
        members=_members_in_force(file, judge),
        data=digest(rows),
        rows={split: sum(r.split == split for r in rows) for split in ("fit", "calibrate", "test")},
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    artifact = Artifact(kind="panel_model", manifest=manifest, features=features, heads=heads)
    tested = [row for row in rows if row.split == "test"]
    metrics = measured(model_of(artifact), tested)
    artifact = artifact.model_copy(
        update={"manifest": manifest.model_copy(update={"metrics": metrics})}
    )
    text = orjson.dumps(artifact.model_dump(), option=orjson.OPT_INDENT_2).decode()
    write_whole(out, text + "\n")
    _show(console, metrics)
    console.print(f"{out}: {len(features)} features, {len(out.read_bytes()) // 1024} KiB")


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
    model = _fitted(file, judge)
    rows = _rows(file, judge, outcomes, prompts_file)
    scored = {row.prompt: _labelled(model, row, list(outcomes.manifest.tiers)) for row in rows}
    labels = [scored[row.prompt] for row in rows if row.split == "calibrate"]
    before = [scored[row.prompt].score for row in rows if row.split == "fit"]
    found = []
    for name in RISKS if risk is None else (risk,):
        grid = opening(before, len(labels), alpha, delta) if name == "selective" else GRID
        found.append(certify(labels, risk=name, alpha=alpha, delta=delta, grid=grid))
    if as_json:
        click.echo(orjson.dumps([_plain(each) for each in found]).decode())
        return
    Console().print(_certificates(found))


def measured(model: PanelModel, rows: Sequence[JudgedRow]) -> dict[str, Any]:
    """What a panel is worth on rows that it was not fitted on, in plain values."""
    judged = model.manifest.judged
    tiers = list(model.heads)
    strong = tiers[-1]
    scored = []
    for row in rows:
        chances = model(row.features)
        scored.append(
            Scored(
                small=chances[judged],
                large=chances[strong],
                length=row.length,
                small_right=row.right[judged],
                large_right=row.right[strong],
            )
        )
    right = [row.small_right for row in scored]
    return {
        "n": len(rows),
        "auc": _with_interval(scored, lambda row: row.small),
        "auc_of_members": _members(rows, judged),
        "auc_length_only": _with_interval(scored, lambda row: -row.length),
        "calibration_error": _short(calibration_error([row.small for row in scored], right)),
        "calibration_error_before": _short(
            calibration_error([model.uncalibrated(row.features, judged) for row in rows], right)
        ),
        "accuracy": {
            order: [_short(accuracy(scored, order, share)) for share in SHARES] for order in ORDERS
        },
        "uplift_over": {
            other: [[_short(end) for end in lead(scored, "uplift", other, s)] for s in SHARES]
            for other in ("random", "doubt")
        },
        "escalated": list(SHARES),
    }


def _members(rows: Sequence[JudgedRow], tier: str) -> dict[str, float]:
    """Area under the ROC curve of each member's own score, where it gave one."""
    areas = {}
    for name in sorted({name for row in rows for name in row.features if name.endswith(SCORE)}):
        told = [row for row in rows if name in row.features]
        area = auroc([row.features[name] for row in told], [row.right[tier] for row in told])
        areas[name.removesuffix(SCORE)] = _short(0.5 if area is None else area)
    return areas


def _with_interval(scored: Sequence[Scored], score: Any) -> list[float]:
    """Area under the ROC curve, and the ends of its interval."""

    def area(rows: Sequence[Scored]) -> float:
        found = auroc([score(row) for row in rows], [row.small_right for row in rows])
        return 0.5 if found is None else found

    return [_short(area(scored)), *map(_short, bootstrap(scored, area, resamples=500))]


def _rows(file: ConfigFile, judge: str, outcomes: Outcomes, prompts_file: Path) -> list[JudgedRow]:
    tier = next(iter(outcomes.manifest.tiers))
    members = stored(_panel(file, judge).members, outcomes, tier)
    prompts = {prompt.id: prompt for prompt in load(prompts_file)}
    return asyncio.run(judged_rows(outcomes, prompts, members, tier))


def _panel(file: ConfigFile, judge: str) -> PanelJudge:
    """The panel, without the artifact that is to be made."""
    entry = file.config.judges.get(judge)
    if entry is None or entry.type != "panel":
        raise ConfigError(f"{file.path}: there is no panel {judge!r} among the judges")
    bare = entry.model_copy()
    (bare.model_extra or {}).pop("artifact", None)
    config = file.config.model_copy(update={"judges": {**file.config.judges, judge: bare}})
    try:
        built = Wiring(config, file.path.parent).snapshot().judges[judge]
    except ConfigError as error:
        raise file.explain(error) from None
    if not isinstance(built, PanelJudge):
        raise ConfigError(f"{file.path}: judge {judge!r} is calibrated; a panel's model is already")
    return built


def _fitted(file: ConfigFile, judge: str) -> PanelModel:
    entry = file.config.judges.get(judge)
    artifact = entry.options.get("artifact") if entry else None
    if not artifact:
        raise ConfigError(
            f"{file.path}: judge {judge!r} has no artifact; `cascade judges fit` makes one"
        )
    return load_model(file.path.parent / artifact)


def _members_in_force(file: ConfigFile, judge: str) -> dict[str, dict[str, Any]]:
    known = file.config.judges
    return {name: settings_of(known[name]) for name in known[judge].members or ()}


def _labelled(model: PanelModel, row: JudgedRow, tiers: Sequence[str]) -> Labelled:
    cannot_tell = model.missing(row.features)
    return Labelled(
        score=None if cannot_tell else model(row.features)[tiers[0]],
        right=row.right[tiers[0]],
        strong_right=row.right[tiers[-1]],
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


def _certificates(found: Sequence[Certificate]) -> Table:
    table = Table(title=f"risk at most {found[0].alpha:g} with probability {1 - found[0].delta:g}")
    for name in ("risk", "accept_at", "accepted", "bound", "labels", "more needed", "seen"):
        table.add_column(name)
    for each in found:
        certified = each.threshold is not None
        table.add_row(
            each.risk,
            f"{each.threshold:g}" if certified else "not certified",
            f"{each.acceptance:.1%}" if certified else "",
            f"{each.bound:.4f}" if each.bound is not None else "",
            str(each.labels),
            {None: "no number will do", 0: ""}.get(each.more, f"about {each.more}"),
            each.reason,
        )
    return table


def _show(console: Console, metrics: Mapping[str, Any]) -> None:
    auc, length = metrics["auc"], metrics["auc_length_only"]
    members = ", ".join(f"{name} {area:.3f}" for name, area in metrics["auc_of_members"].items())
    console.print(
        f"on {metrics['n']} answers that nothing was fitted on: AUC {auc[0]:.3f} ({auc[1]:.3f} to "
        f"{auc[2]:.3f}); of its members' scores: {members}; by length alone {length[0]:.3f}\n"
        f"calibration error {metrics['calibration_error']:.3f}, "
        f"before calibration {metrics['calibration_error_before']:.3f}",
        highlight=False,
    )
    table = Table()
    table.add_column("sent up by")
    for share in metrics["escalated"]:
        table.add_column(f"right at {share:.0%}", justify="right")
    for order, values in metrics["accuracy"].items():
        table.add_row(order, *(f"{value:.3f}" for value in values))
    for other, ends in metrics["uplift_over"].items():
        table.add_row(f"uplift over {other}", *(f"{low:+.3f} to {high:+.3f}" for low, high in ends))
    console.print(table)


def _short(value: float) -> float:
    return round(value, 4)
