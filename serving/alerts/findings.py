"""What there is to tell now: of the traffic, and of the experiments with what follows for them."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Engine

from serving.alerts.jumps import Hour, Jump, jump
from serving.alerts.log import Finding
from serving.alerts.traffic import RULES
from serving.overrides.store import EXPERIMENT, change
from serving.results import Trial
from serving.results.comparisons import checked, measure
from serving.results.guardrails import Breach, breaches
from serving.results.period import current

logger = logging.getLogger(__name__)

GUARDRAIL = "guardrail"
"""The kind of such a finding, and who turns an arm off in the history of the experiment."""


def of_traffic(
    now: Mapping[tuple[str, str], Hour], past: Mapping[tuple[str, str], Sequence[Hour]]
) -> Iterator[Finding]:
    """What is out of the ordinary in the last hour."""
    for (kind, subject), hour in now.items():
        found = jump(hour, past.get((kind, subject), ()), RULES[kind])
        if found is not None:
            yield Finding(
                kind=kind,
                subject=subject,
                message=_MESSAGES[kind](subject, found),
                details=asdict(found),
            )


def of_experiments(engine: Engine, trials: Iterable[Trial]) -> Iterator[Finding]:
    """Arms beyond a guardrail, which are turned off, and experiments with wrong shares."""
    for trial in trials:
        now = current(engine, trial, time.time())
        if now.until is not None:
            continue  # only one arm has a share: there is nothing to watch
        measured = measure(engine, now)
        shares = checked(now, measured)
        if shares is not None and shares.broken:
            counts = ", ".join(f"{arm} {units:,}" for arm, units in shares.units.items())
            yield Finding(
                kind="sample_ratio",
                subject=trial.name,
                message=(
                    f"experiment {trial.name}: its arms did not get their share of units "
                    f"({counts}; p = {shares.p:.1g}): its results cannot be trusted"
                ),
                details=asdict(shares),
            )
        for breach in breaches(engine, now, measured):
            yield _turned_off(engine, now, breach)


def _turned_off(engine: Engine, trial: Trial, breach: Breach) -> Finding:
    """Turn the arm off: it gets no more units, and its units go to the other arms."""
    change(
        engine,
        f"{EXPERIMENT}{trial.name}",
        {"weights": {breach.arm: 0}},
        who=GUARDRAIL,
        why=breach.message,
    )
    logger.warning("experiment %s: %s is turned off: %s", trial.name, breach.arm, breach.message)
    return Finding(
        kind=GUARDRAIL,
        subject=f"{trial.name}/{breach.arm}",
        message=f"experiment {trial.name}: {breach.message}; it is turned off",
        details={**asdict(breach), "experiment": trial.name},
    )


def _silent(subject: str, found: Jump) -> str:
    return (
        f"judge {subject} had no answer to {found.now:.0%} of {found.number:,.0f} questions in the "
        f"last hour; usual is {found.usual:.1%}, the worst hour of the week had {found.worst:.1%}"
    )


def _escalates(subject: str, found: Jump) -> str:
    return (
        f"policy {subject} escalated {found.now:.0%} of {found.number:,.0f} requests in the last "
        f"hour; usual is {found.usual:.1%}, the most of the week was {found.worst:.1%}"
    )


def _costs(subject: str, found: Jump) -> str:
    return (
        f"a request by policy {subject} cost ${found.now:.3g} in the mean of the last hour; usual "
        f"is ${found.usual:.3g}, the most of the week was ${found.worst:.3g}"
    )


def _misses(subject: str, found: Jump) -> str:
    return (
        f"tier {subject} read {found.now:.0%} of its prompt tokens from a cache in the last hour; "
        f"usual is {found.usual:.1%}, the least of the week was {found.worst:.1%}"
    )


_MESSAGES = {
    "judge_silent": _silent,
    "escalation_rate": _escalates,
    "cost": _costs,
    "cache_hit_rate": _misses,
}
