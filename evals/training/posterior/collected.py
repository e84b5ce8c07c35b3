"""Stored outcomes as rows to fit a posterior on, each told by what was not fitted on its group.

A judge that was fitted on these very answers knows them by heart: a panel's heads are fitted anew
without each fold, and that fold hears what they then say. The folds are those that the posterior is
cross-validated in. Test rows hear the panel and the estimator as they serve.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cascade.errors import JudgeError
from cascade.protocols import Judge
from cascade.types import Verdict
from evals.datasets import Prompt
from evals.outcomes import Outcomes, OutcomesError
from evals.panel_fit import JudgedRow, cross_fitted
from evals.panel_rows import completion_of, stored
from evals.training.fitters import folds as deal
from evals.training.posterior.candidates import Folds
from evals.training.posterior.estimates import Estimates
from evals.training.posterior.fit import Recipe, within
from evals.training.posterior.rows import JudgedPrompt
from evals.training.rows import TrainingError
from evals.training.sources import Source
from judges.fitted import PanelModel
from judges.panel import PanelJudge, gives_scores

Said = Mapping[str, Verdict]
"""By prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Outcomes that are to become rows.

    Attributes:
        source: the prompts, those of the split "fit" first; see `ordered`.
        outcomes: the answers, and what else was collected.
        prompts: by id.
        folds: of the fit prompts; see `folds_of`.
    """

    source: Source
    outcomes: Outcomes
    prompts: Mapping[str, Prompt]
    folds: Folds


def ordered(source: Source) -> Source:
    """The same with the fit prompts first, which folds count from."""
    lines = sorted(source.lines, key=lambda line: line.split != "fit")
    if not any(line.split == "fit" for line in lines):
        raise TrainingError("no prompt of the set is of the split fit")
    return replace(source, lines=lines)


def folds_of(source: Source, recipe: Recipe) -> Folds:
    """Of the fit prompts, the same in which a posterior is fitted."""
    groups = np.array([line.group for line in source.lines if line.split == "fit"])
    return deal(groups, recipe.folds, recipe.seed)


def fitted_panel(judge: Judge, tier: str) -> PanelModel | None:
    """The model of a panel that was fitted for the tier; None where there is none."""
    model = judge.model if isinstance(judge, PanelJudge) else None
    return model if model is not None and model.manifest.judged == tier else None


def heads(judge: Judge, tier: str) -> int:
    """How many heads of a panel have to be fitted anew for the tier's answers."""
    model = fitted_panel(judge, tier)
    return 0 if model is None else 2 * len(model.heads) - 1


def verdicts(
    given: Collected, judge: Judge, tier: str, done: Callable[[], None] = lambda: None
) -> Said:
    """What a judge says of the tier's stored answers, of those it can tell of.

    Args:
        given: the answers.
        judge: as the configuration has it.
        tier: whose answers.
        done: called after each of the `heads` of a fitted panel.

    Raises:
        FitError: there are too few labels to fit the panel.
        JudgeError: the judge could not judge; says which prompt.
        OutcomesError: the panel's members ask models, and what they said was not stored.
    """
    raw = asyncio.run(_raw(given, judge, tier))
    if not isinstance(judge, PanelJudge) or judge.model is None:
        return {prompt: said for prompt, said in raw.items() if said.score is not None}
    model = fitted_panel(judge, tier)
    if model is None:  # nothing but a hard fault is found in answers of another tier
        return {prompt: said for prompt, said in raw.items() if said.final}
    names = [line.request.id for line in given.source.lines]
    found = {name: _weighed(raw[name], _chances(model, raw[name])) for name in names}
    found |= _held_out(given, judge, model, raw, done)
    return {prompt: said for prompt, said in found.items() if said is not None}


def assembled(source: Source, estimates: Estimates, said: Mapping[str, Said]) -> list[JudgedPrompt]:
    """The rows.

    Args:
        source: the prompts with their grades.
        estimates: of them.
        said: by tier, the verdicts on its answers.
    """
    return [
        JudgedPrompt(
            prompt=line.request.id,
            group=line.group,
            split=line.split,
            right={tier: bool(line.labels[tier]) for tier in source.tiers},
            estimate=estimates[line.request.id],
            verdicts={
                t: each[line.request.id] for t, each in said.items() if line.request.id in each
            },
        )
        for line in source.lines
    ]


async def _raw(given: Collected, judge: Judge, tier: str) -> dict[str, Verdict]:
    """What is said without a panel's model, with the features that the model looks at."""
    try:
        asked = _as_stored(judge, given.outcomes, tier)
    except OutcomesError:
        if fitted_panel(judge, tier) is not None:
            raise
        return {}  # nobody judged this tier's answers when they were collected
    answers, found = given.outcomes.answers(tier), {}
    for line in given.source.lines:
        name = line.request.id
        request = given.prompts[name].request()
        try:
            found[name] = await asked.judge(request, completion_of(answers[name]))
        except JudgeError as error:
            raise JudgeError(f"prompt {name}: {judge.name}: {error.message}") from None
    return found


def _as_stored(judge: Judge, outcomes: Outcomes, tier: str) -> Judge:
    if isinstance(judge, PanelJudge):
        return PanelJudge(name=judge.name, members=stored(judge.members, outcomes, tier))
    return stored([judge], outcomes, tier)[0]


def _held_out(
    given: Collected,
    judge: PanelJudge,
    model: PanelModel,
    raw: Said,
    done: Callable[[], None],
) -> dict[str, Verdict | None]:
    """The verdicts on the fit prompts, by heads that were not fitted on their group."""
    lines = [line for line in given.source.lines if line.split == "fit"]
    looked_at = np.array([not raw[line.request.id].final for line in lines], dtype=bool)
    answers = given.outcomes.answers(model.manifest.judged)
    rows = [
        JudgedRow(
            prompt=line.request.id,
            kind=line.kind,
            group=line.group,
            split=line.split,
            features=raw[line.request.id].features,
            right={tier: bool(label) for tier, label in line.labels.items()},
            length=float(len(answers[line.request.id].text)),
        )
        for line, looked in zip(lines, looked_at, strict=True)
        if looked
    ]
    aside = [member.name for member in judge.members if not gives_scores(member)]
    told = cross_fitted(
        rows, list(model.heads), within(given.folds, looked_at), aside=aside, done=done
    )
    return {
        row.prompt: _weighed(raw[row.prompt], {tier: chances[tier] for tier in model.heads})
        for row, chances in zip(rows, told, strict=True)
    }


def _chances(model: PanelModel, said: Verdict) -> Mapping[str, float] | None:
    """What the panel's model makes of the features; None where it cannot tell or is not asked."""
    return None if said.final or model.missing(said.features) else model(said.features)


def _weighed(said: Verdict, chances: Mapping[str, float] | None) -> Verdict | None:
    """The verdict as the panel gives it; None where it cannot tell."""
    if chances is None:
        return said if said.final else None
    judged, *_ = chances
    others = {tier: chance for tier, chance in chances.items() if tier != judged}
    return replace(said, score=chances[judged], others=others)
