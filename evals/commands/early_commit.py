"""cascade judges commit: a certificate for a commit threshold, and what it costs in quality."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson
from rich.console import Console

from cascade.errors import ConfigError
from cascade.protocols import Judge
from cascade.types import Step
from evals.commands.panels import outcomes_option, prompts_option
from evals.datasets import load
from evals.early_commit import Effect, Share, Started, certificates, effect, ranks, split, started
from evals.guarantee import RISKS, Certificate
from evals.outcomes_lines import read
from evals.panel_report import Printed, certified, on_screen
from serving.commands.options import config_option, json_option
from serving.commands.options import load as load_config
from serving.config import ConfigFile
from serving.wiring import Wiring


class Asked(NamedTuple):
    """Whose threshold is wanted: the ladder's first step, and who looks at its answer's start."""

    step: Step
    start: Judge
    whole: Judge
    accept_at: float


@click.command(name="commit")
@config_option
@click.option("--policy", default="cascade", show_default=True, help="The ladder, by its name.")
@click.option("--judge", default=None, help="Who looks at the start; default the step's own judge.")
@click.option(
    "--after",
    "after_tokens",
    type=click.IntRange(1),
    default=24,
    show_default=True,
    help="How many tokens the start has.",
)
@outcomes_option
@prompts_option
@click.option("--alpha", type=float, default=0.05, show_default=True, help="The risk allowed.")
@click.option(
    "--delta", type=float, default=0.1, show_default=True, help="The chance that it is exceeded."
)
@click.option(
    "--risk",
    type=click.Choice(list(RISKS)),
    default="joint",
    show_default=True,
    help="Which certificate the effect is printed for.",
)
@json_option
def commit(  # noqa: PLR0917 - click passes options by name
    path: Path | None,
    policy: str,
    judge: str | None,
    after_tokens: int,
    outcomes_file: Path,
    prompts_file: Path,
    alpha: float,
    delta: float,
    risk: str,
    as_json: bool,
) -> None:
    """Find the loosest commit.at whose risk is at most alpha, with probability 1 - delta.

    It is tested on the starts of the outcomes' calibrate rows. What the rule does to the ladder is
    printed from their test rows.
    """
    asked = asked_of(load_config(path), policy, judge)
    prompts = {prompt.id: prompt for prompt in load(prompts_file)}
    judges = (asked.start, asked.whole)
    rows = asyncio.run(started(read(outcomes_file), prompts, judges, after_tokens))
    found = certificates(rows, alpha, delta)
    chosen = next(each for each in found if each.risk == risk)
    if as_json:
        done = effect_of(rows, chosen, asked.accept_at)
        certified_ = [_plain(each) for each in found]
        values = {
            "after_tokens": after_tokens,
            "certificates": certified_,
            "effect": _numbers(done),
        }
        click.echo(orjson.dumps(values).decode())
        return
    on_screen(Console(), told(asked, rows, found, chosen, after_tokens))


def asked_of(file: ConfigFile, policy: str, judge: str | None) -> Asked:
    """Who judges what, by the configuration.

    Raises:
        ConfigError: the policy is no ladder whose first step is judged, or there is no such judge.
    """
    try:
        snapshot = Wiring(file.config, file.path.parent).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None
    entry, arm = file.config.policies.get(policy), snapshot.arms.get(policy)
    first: Step | None = arm.policy.steps[0] if arm else None
    if entry is None or entry.type != "ladder" or first is None or first.judge is None:
        raise ConfigError(
            f"{file.path}: there is no ladder {policy!r} among the policies whose first step has a "
            "judge; name one with --policy"
        )
    name = judge or first.judge
    if name not in snapshot.judges:
        raise ConfigError(
            f"{file.path}: there is no judge {name!r}; there are: {', '.join(snapshot.judges)}"
        )
    accept_at = float(entry.options["steps"][0]["accept_at"])
    return Asked(first, snapshot.judges[name], snapshot.judges[first.judge], accept_at)


def effect_of(rows: list[Started], chosen: Certificate, accept_at: float) -> Effect | None:
    """What the certified threshold does on the test rows; None when it releases nothing."""
    tested = split(rows, "test")
    if chosen.threshold is None or not chosen.accepted or not tested:
        return None
    return effect(tested, at=chosen.threshold, accept_at=accept_at)


def told(
    asked: Asked,
    rows: list[Started],
    found: list[Certificate],
    chosen: Certificate,
    after_tokens: int,
) -> list[Printed | str]:
    """The certificates and what the chosen one does, to be printed."""
    table = certified(found)
    head = [
        {"accept_at": "commit.at", "accepted": "released"}.get(each, each) for each in table.head
    ]
    fit = split(rows, "fit")
    seen = f"AUC of {asked.start.name} on the starts of the fit rows: {_known(ranks(fit))}."
    named = Printed(f"the first {after_tokens} tokens: {table.title}", head, table.rows)
    done = effect_of(rows, chosen, asked.accept_at)
    return [named, seen, *_done(asked, chosen, done, after_tokens)]


def _done(
    asked: Asked, chosen: Certificate, done: Effect | None, after_tokens: int
) -> list[Printed | str]:
    if done is None:
        nothing = (
            f"No threshold is certified at which {asked.start.name} releases anything "
            f"({chosen.risk}): leave the commit rule out, or collect more labels."
        )
        return [nothing]
    rows = [
        ("right in the end", *map(_shown, done.right)),
        ("sent up", *map(_shown, done.sent_up)),
        ("released early", "", _shown(done.released)),
        ("released early and wrong", "", _shown(done.wrong)),
    ]
    lost = (
        f"{_shown(done.long)} of the answers last until the look; the AUC of {asked.start.name} "
        f"on their starts is {_known(done.ranks)}. The rule loses "
        f"{_shown(done.lost)} of right answers."
    )
    yaml = f"commit: {{after_tokens: {after_tokens}, at: {chosen.threshold:g}, "
    return [
        Printed(f"{done.rows} test prompts", ("share", "without", "with the rule"), rows),
        lost,
        f"{yaml}judge: {asked.start.name}}}",
    ]


def _known(share: Share | None) -> str:
    return _shown(share) if share else "unknown"


def _shown(share: Share) -> str:
    low, high = share.interval
    return f"{share.value:.3f} ({low:.3f} to {high:.3f})"


def _plain(found: Certificate) -> dict[str, Any]:
    return {
        "risk": found.risk,
        "alpha": found.alpha,
        "delta": found.delta,
        "at": found.threshold,
        "released": found.acceptance,
        "bound": found.bound,
        "labels": found.labels,
        "more_labels": found.more,
        "reason": found.reason,
    }


def _numbers(done: Effect | None) -> dict[str, Any] | None:
    if done is None:
        return None
    pairs = {"right": done.right, "sent_up": done.sent_up}
    single = ("long", "released", "wrong", "lost")
    return {
        "rows": done.rows,
        **{name: [_number(each) for each in pair] for name, pair in pairs.items()},
        **{name: _number(getattr(done, name)) for name in single},
        "auc": _number(done.ranks) if done.ranks else None,
    }


def _number(share: Share) -> list[float]:
    return [share.value, *share.interval]
