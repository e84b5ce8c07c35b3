"""Runs a set of prompts through a configuration and leaves a folder with all that was found."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from evals.collecting.asking import Report
from evals.collecting.gathering import Collection, Counting, gathered
from evals.collecting.meter import Meter
from evals.collecting.models import Wanted
from evals.collecting.outcomes import texts_of
from evals.datasets import Prompt
from evals.runs import record as records
from evals.tables import OutcomeTable, SplitRule, write
from serving.config import Config, ConfigFile
from serving.models.sources import Progress, silent
from serving.tier_config import GpuPrice, TokenPrice

TABLE: Final = "outcomes.parquet"
JOURNAL: Final = "outcomes.answers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be run.

    Attributes:
        name: of the run.
        file: the configuration.
        judge: its judge whose scores are wanted.
        estimator: its estimator whose predictions are.
        prompts: what is asked.
        source: where they are from, in words.
        split: parts those that do not say theirs.
        compared: policies to be held against each model alone.
    """

    name: str
    file: ConfigFile
    judge: str
    estimator: str
    prompts: Sequence[Prompt]
    source: str
    split: SplitRule = field(default_factory=SplitRule)
    compared: Sequence[str]


async def run(
    plan: Plan, folder: Path, meter: Meter, counting: Counting, progress: Progress = silent
) -> tuple[OutcomeTable, Report]:
    """Ask what the folder does not hold yet, and write the table and the record into it.

    Raises:
        CascadeError: the configuration cannot work, a model cannot be started, or the folder cannot
            be written to.
    """
    began, clock = datetime.now(UTC), time.monotonic()
    collection = Collection(
        wanted=Wanted(file=plan.file, prices={}, estimator=plan.estimator, judge=plan.judge),
        prompts=plan.prompts,
        journal=folder / JOURNAL,
        source=TABLE,
        split=plan.split,
    )
    table, report = await gathered(collection, meter, counting, progress)
    write(table, folder / TABLE, texts_of(report.rows, table.tiers))
    record = records.RunRecord(
        name=plan.name,
        began=began.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - clock, 1),
        models=collection.wanted.models,
        prices=_prices(plan.file.config),
        judge=plan.judge,
        estimator=plan.estimator,
        prompts=plan.source,
        compared=list(plan.compared),
        **_spent(report),
        machine=records.machine(),
        cascade=records.package(),
    )
    again = records.continued(record, folder, asked=meter.requests > 0)
    records.write(again, folder)
    return table, report


def _spent(report: Report) -> dict[str, Any]:
    """Calls and dollars of all that the table holds, in whichever goes it was asked for."""
    answers = {line.key: line for row in report.rows for line in row.answers.values()}
    verdicts = {line.key: line for row in report.rows for line in row.verdicts.values()}
    costs = [line.dollars for line in answers.values()]
    costs += [line.dollars for line in verdicts.values() if line.dollars != 0]
    known = [cost for cost in costs if cost is not None]
    return {"calls": len(costs), "dollars": sum(known, Decimal(0))}


def _prices(config: Config) -> dict[str, str]:
    """As they are stated, in words."""
    return {name: _words(tier.price) for name, tier in config.tiers.items()}


def _words(price: object) -> str:
    match price:
        case TokenPrice():
            return (
                f"${price.input:f} for prompt, ${price.cache_read:f} for cached and "
                f"${price.output:f} for answer tokens, by the million"
            )
        case GpuPrice():
            return f"${price.gpu_usd_per_hour:f} a GPU hour"
        case None:
            return "unknown"
    return "litellm's map"
