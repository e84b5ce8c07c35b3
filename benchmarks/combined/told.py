"""What the product's own parts say of each row, none of them fitted on it.

Per fold: the estimator, the panel and the posterior are fitted on the other folds. The posterior
learns from what the first two say of those rows, which is told out of fold as well, in folds within
the folds.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np

from cascade.posterior import Identity, Model
from cascade.protocols import Judge
from cascade.types import Beliefs, ChatRequest, Choice, Completion, Verdict
from evals.panel_fit import JudgedRow, cross_fitted, fit_panel
from evals.text_judging import AnswerPair
from evals.training.fit import Recipe, apply, fit
from evals.training.fitters import folds
from evals.training.posterior.fit import Recipe as PosteriorRecipe
from evals.training.posterior.rows import JudgedPrompt
from evals.training.posterior.train import train
from evals.training.rows import Index, Matrix, Rows
from judges.asked import AskedJudge
from judges.fitted import Artifact, Manifest, PanelModel, model_of
from judges.format import FormatJudge
from judges.panel import features_of, gives_scores
from judges.working import WorkingJudge

WEAK, STRONG = TIERS = ("weak", "strong")
JUDGE: Final = "panel"
ESTIMATOR: Final = "learned"
FOLDS: Final = 5
INNER_FOLDS: Final = 2
"""Of the estimator's calibration inside each fit; the product's five take twice as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said of each row; matrices of shape (rows, 2): of weak and of strong.

    Attributes:
        labels: whether the answers are right, 0 or 1.
        estimate: the estimator's word before any call.
        verdict: the panel's word on the weak answer, and what it says of the strong one.
        before: what the posterior believes before any call.
        moves: its covariances: of a verdict on weak with the mean of each.
        after: what it believes once the weak answer was judged.
    """

    labels: Matrix
    estimate: Matrix
    verdict: Matrix
    before: Matrix
    moves: Matrix
    after: Matrix

    def __len__(self) -> int:
        return len(self.labels)


def told(
    rows: Rows,
    pairs: Sequence[AnswerPair],
    *,
    seed: int,
    head: Recipe | None = None,
    kind: str = "blend",
    parts: int = FOLDS,
) -> Told:
    """Everything that is said of each row.

    Args:
        rows: the prompts with their labels.
        pairs: the same with both answers.
        seed: of all folds.
        head: how the estimator is fitted; default as the product does.
        kind: of the panel's model.
        parts: the folds that are left out in turn.
    """
    recipe = head or Recipe(folds=INNER_FOLDS, inside=1.0, seed=seed)
    members = _members()
    judged = asyncio.run(_judged(pairs, rows, members))
    aside = [member.name for member in members if not gives_scores(member)]
    found = {each.name: np.full((len(rows), 2), np.nan) for each in fields(Told)}
    found["labels"] = rows.labels
    for train_, test in folds(rows.groups, parts, seed):
        some = [judged[i] for i in train_]
        inner = folds(rows.groups[train_], FOLDS, seed)
        estimates = _held_out(rows.take(train_), recipe, inner)
        heard = cross_fitted(some, TIERS, inner, kind=kind, aside=aside)
        posterior = _posterior(some, estimates, heard, seed)
        means, _ = apply(fit(rows.take(train_), recipe), rows.take(test))
        panel = _panel(some, kind, aside)
        for i, mean in zip(test.tolist(), means, strict=True):
            _put(found, i, posterior, mean, _verdict(panel(judged[i].features)))
    return Told(**found)


def _put(
    found: Mapping[str, Matrix], at: int, posterior: Model, mean: Matrix, verdict: Verdict
) -> None:
    """Write down what is said of one row."""
    before = posterior.before(Beliefs(mean=dict(zip(TIERS, map(float, mean), strict=True))))
    after = posterior.after(before, [(WEAK, verdict)])
    known = before.covariance or {}
    found["estimate"][at] = mean
    found["verdict"][at] = verdict.score, verdict.others[STRONG]
    found["before"][at] = [before.mean[tier] for tier in TIERS]
    found["moves"][at] = [known.get((WEAK, tier), 0.0) for tier in TIERS]
    found["after"][at] = [after.mean[tier] for tier in TIERS]


def _members() -> list[Judge]:
    """The default panel's members that read nothing but text."""
    return [FormatJudge(name="well_formed"), WorkingJudge(name="working"), AskedJudge(name="asked")]


async def _judged(
    pairs: Sequence[AnswerPair], rows: Rows, members: Sequence[Judge]
) -> list[JudgedRow]:
    found = []
    for at, pair in enumerate(pairs):
        request = ChatRequest(id=str(at), messages=[{"role": "user", "content": pair.prompt}])
        choice = Choice(text=pair.weak_text, finish_reason="stop")
        completion = Completion(choices=(choice,), tier=WEAK)
        verdicts = [await member.judge(request, completion) for member in members]
        found.append(
            JudgedRow(
                prompt=str(at),
                kind="sums",
                group=str(rows.groups[at]),
                split="fit",
                features=features_of(verdicts),
                right=dict(zip(TIERS, map(bool, rows.labels[at]), strict=True)),
                length=float(len(pair.weak_text)),
            )
        )
    return found


def _held_out(rows: Rows, recipe: Recipe, inner: Sequence[tuple[Index, Index]]) -> Matrix:
    means = np.zeros_like(rows.labels)
    for train_, test in inner:
        means[test], _ = apply(fit(rows.take(train_), recipe), rows.take(test))
    return means


def _panel(rows: Sequence[JudgedRow], kind: str, aside: Sequence[str]) -> PanelModel:
    fitted = fit_panel(rows, TIERS, kind=kind, aside=aside)
    manifest = Manifest(judged=WEAK, models={}, members={}, data="", rows={}, fitted_at="")
    return model_of(
        Artifact(
            kind="panel_model", manifest=manifest, features=fitted.features, heads=fitted.heads
        )
    )


def _posterior(
    rows: Sequence[JudgedRow], estimates: Matrix, heard: Sequence[Mapping[str, float]], seed: int
) -> Model:
    learned = [
        JudgedPrompt(
            prompt=row.prompt,
            group=row.group,
            split="fit",
            right=row.right,
            estimate=dict(zip(TIERS, map(float, mean), strict=True)),
            verdicts={WEAK: _verdict(words)},
        )
        for row, mean, words in zip(rows, estimates, heard, strict=True)
    ]
    return train(
        learned,
        dict.fromkeys(TIERS, ""),
        judges={WEAK: Identity(name=JUDGE)},
        estimator=Identity(name=ESTIMATOR),
        recipe=PosteriorRecipe(seed=seed),
    )


def _verdict(words: Mapping[str, float]) -> Verdict:
    return Verdict(judge=JUDGE, score=words[WEAK], others={STRONG: words[STRONG]})
