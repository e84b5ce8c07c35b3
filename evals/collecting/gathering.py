"""From a set of prompts and a configuration to an outcome table: the parts put together."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cascade.early import free
from cascade.errors import ConfigError, EstimatorError
from cascade.protocols import DifficultyEstimator, Judge
from cascade.snapshot import Snapshot
from cascade.types import Beliefs
from evals.collecting.adopting import adopt
from evals.collecting.asking import REFERENCE_TAG, Asking, Report, collect, over_budget
from evals.collecting.journal import Estimated, Journal, request_hash, text_hash
from evals.collecting.meter import Meter
from evals.collecting.models import Wanted, ready, wired
from evals.collecting.outcomes import table_of
from evals.collecting.scoring import Encode
from evals.datasets import DatasetError, Prompt
from evals.judging import instructions
from evals.outcomes import Outcomes
from evals.scorers import SIMILARITY
from evals.tables import OutcomeTable, SplitRule
from evals.training.encoding import embedding_model
from judges.llm import LlmJudge
from serving.identities import estimator_identity, judge_identity
from serving.models.sources import Progress, silent

Counting = Callable[[Sequence[str]], AbstractContextManager[Callable[[str], None]]]
"""Shows how far it is: takes the tier of each answer to come, and gives what counts one."""

Kept = tuple[Outcomes, Sequence[Prompt]]
"""Answers that are there already, and all prompts that they are to."""

_TRIES: Final = 3
"""How often an estimator that was too slow is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What is to be had.

    Attributes:
        wanted: who is asked.
        prompts: what.
        journal: keeps what came back; made where it does not exist.
        source: what the table is called.
        concurrency: prompts in flight at once.
        split: parts the prompts that do not say theirs.
        kept: answers from elsewhere to the whole set of prompts; None: there are none.
    """

    wanted: Wanted
    prompts: Sequence[Prompt]
    journal: Path
    source: str
    concurrency: int = 1
    split: SplitRule
    kept: Kept | None = None


async def gathered(
    collection: Collection, meter: Meter, counting: Counting, progress: Progress = silent
) -> tuple[OutcomeTable, Report]:
    """Ask what the journal does not hold, and make a table of all that was answered.

    Raises:
        ConfigError: the configuration cannot work, or a model cannot be started.
        DatasetError: nothing was answered.
        OutcomesError: the journal cannot be used.
    """
    wanted = collection.wanted
    names = wanted.names
    with Journal(collection.journal) as journal:
        looked_at = wired(wanted, meter)
        if collection.kept is not None:
            answers, whole = collection.kept
            tiers = {name: looked_at.tiers[name] for name in names}
            adopt(answers, whole, tiers, wanted.models, journal)
        coming = _to_come(collection, journal)
        starts = bool(coming) or _asks_models(collection, looked_at)
        async with ready(wanted, meter, progress, starts=starts) as snapshot:
            with counting(coming) as done:
                asking = _asking(collection, snapshot)
                report = await collect(asking, collection.prompts, journal, done)
            estimator = _estimator(wanted, snapshot)
            predicted = None
            if estimator is not None:
                setting = _estimator_setting(wanted, estimator)
                predicted = [
                    await _estimate(estimator, setting, each, journal, report)
                    for each in collection.prompts
                ]
    if report.left and not any(row.answers for row in report.rows):
        raise DatasetError("the budget does not allow a single answer")
    table = table_of(
        report.rows,
        names,
        source=collection.source,
        split=collection.split,
        predicted=predicted,
        encode=_encoder(collection),
    )
    return table, report


def _asking(collection: Collection, snapshot: Snapshot) -> Asking:
    wanted = collection.wanted
    tiers = {name: snapshot.tiers[name] for name in wanted.names}
    return Asking(
        tiers=tiers,
        models=wanted.models,
        judge=None if wanted.judge is None else _judge(wanted.judge, snapshot),
        judge_setting="" if wanted.judge is None else _judge_setting(wanted, snapshot),
        grader=None
        if collection.wanted.grader is None
        else LlmJudge(
            name="grader",
            mode="pairwise",
            tier=collection.wanted.grader,
            reference_tag=REFERENCE_TAG,
            tiers=snapshot.tiers,
        ),
        grader_setting=_setting(collection),
        concurrency=collection.concurrency,
    )


def _asks_models(collection: Collection, snapshot: Snapshot) -> bool:
    """Whether a model is asked for more than answers."""
    judge = _asking(collection, snapshot).judge
    estimator = _estimator(collection.wanted, snapshot)
    return (
        collection.wanted.grader is not None
        or (judge is not None and not free(judge))
        or (estimator is not None and estimator.asks is not None)
    )


def _judge_setting(wanted: Wanted, snapshot: Snapshot) -> str:
    """The judge with all that it is made of, and the models of the tiers that it may ask."""
    name, file = wanted.judge or "", wanted.file
    identity = judge_identity(file.config, file.path.parent, snapshot.judges, name)
    models = {tier: entry.served_model for tier, entry in file.config.tiers.items()}
    return text_hash(identity.digest, repr([(tier, models[tier]) for tier in sorted(wanted.told)]))


def _setting(collection: Collection) -> str:
    """The grader's model and what it is told; with others it says something else."""
    model = collection.wanted.models.get(collection.wanted.grader or "", collection.wanted.grader)
    return f"by {model} {instructions('pairwise')}"


def _judge(name: str, snapshot: Snapshot) -> Judge:
    if name not in snapshot.judges:
        raise ConfigError(f"there is no judge {name!r}; there are: {', '.join(snapshot.judges)}")
    return snapshot.judges[name]


def _estimator(wanted: Wanted, snapshot: Snapshot) -> DifficultyEstimator | None:
    """The estimator of that name, as a policy uses it."""
    if wanted.estimator is None:
        return None
    known = {
        arm.estimator.name: arm.estimator
        for arm in snapshot.arms.values()
        if arm.estimator is not None
    }
    if wanted.estimator not in known:
        there = ", ".join(known) or "none"
        raise ConfigError(f"no policy uses an estimator {wanted.estimator!r}; there are: {there}")
    return known[wanted.estimator]


async def _estimate(
    estimator: DifficultyEstimator, setting: str, prompt: Prompt, journal: Journal, report: Report
) -> Beliefs | None:
    """What was believed; None, and a word in the report, where there was no telling."""
    said = Estimated(request=request_hash(prompt), estimator=setting, mean={})
    kept = journal.lines.get(said.key)
    if isinstance(kept, Estimated):
        return Beliefs(mean=kept.mean)
    fault: EstimatorError | None = None
    for _ in range(_TRIES):
        try:
            found = (await estimator.estimate([prompt.request()]))[0]
        except EstimatorError as error:
            fault = error
            if over_budget(error):
                break
        else:
            if estimator.asks is not None:
                dollars = None if found.cost is None else found.cost.total
                journal.append(replace(said, mean=dict(found.mean), dollars=dollars))
            return found
    if fault is not None:
        report.missed(f"{prompt.id} ({estimator.name})", fault)
    return None


def _estimator_setting(wanted: Wanted, estimator: DifficultyEstimator) -> str:
    """The estimator with all that it is made of, and the model that it asks."""
    config, asks = wanted.file.config, estimator.asks
    model = None if asks is None else config.tiers[asks].served_model
    digest = estimator_identity(config, wanted.estimator, estimator).digest
    return f"{estimator.name} {text_hash(digest, repr((asks, model)))}"


def _to_come(collection: Collection, journal: Journal) -> list[str]:
    """The tier of each answer that is still to be asked for."""
    models = collection.wanted.models
    asked = {request_hash(prompt) for prompt in collection.prompts}
    return [
        tier
        for key in asked
        for tier, model in models.items()
        if journal.answer(key, tier, model) is None
    ]


def _encoder(collection: Collection) -> Encode | None:
    """What embeds texts, if a scorer needs it: the configuration's first embedder, or ours."""
    if all(prompt.scorer != SIMILARITY for prompt in collection.prompts):
        return None
    return embedding_model(collection.wanted.file.path, None).encode
