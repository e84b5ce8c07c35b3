"""Fits the update after a judge: for each set of tiers that may be judged, the head of every tier.

Groups are dealt into folds once. What a row is told, before and after each verdict, always comes
from heads that were not fitted on its group, so the movements between the two, from which the
kappas are taken, are those that a new request would see.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cascade.posterior import Head
from cascade.posterior.heads import Rule
from cascade.posterior.model import Pair, Tried, sets_of
from evals.panel_models import short
from evals.training.fitters import folds as deal
from evals.training.posterior.candidates import (
    Candidate,
    Folds,
    Index,
    Matrix,
    as_it_is,
    inputs_of,
    logistic,
    rate,
    simplest,
)
from evals.training.posterior.rows import (
    JudgedPrompt,
    check,
    groups_of,
    judged_of,
    labels_of,
)
from evals.training.rows import TrainingError

MOST_JUDGED = 4
"""Tiers that may be judged: each one more doubles the sets."""

Means = Mapping[Tried, Matrix]
"""By set of tiers judged, P(acceptable) of shape (rows, tiers)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a posterior is fitted.

    Attributes:
        folds: of cross-validation.
        features: most features of the verdicts that a head looks at besides the scores.
        seed: of the folds.
    """

    folds: int = 5
    features: int = 5
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What was fitted.

    Attributes:
        heads: by set of tiers judged, the chosen candidate of each tier, as it is applied.
        kappas: see `cascade.posterior.Model`.
        chosen: names of the candidates.
        held_out: what each row is told by heads that were not fitted on its group; also after a
            verdict that was sought of a tier and is never given, except for final ones.
    """

    heads: Mapping[Tried, Mapping[str, Head]]
    kappas: Mapping[Tried, Mapping[Pair, float]]
    chosen: Mapping[Tried, Mapping[str, str]]
    held_out: Means


def fit_posterior(
    rows: Sequence[JudgedPrompt],
    tiers: Sequence[str],
    sought: Collection[str],
    recipe: Recipe | None = None,
    done: Callable[[], None] = lambda: None,
) -> Fitted:
    """Fit on rows that are nobody's test rows.

    Args:
        rows: all of them are used.
        tiers: cheapest first.
        sought: those whose answers somebody was to judge; of one without any verdict it is learned
            that its judge never tells.
        recipe: how.
        done: called after each of the `steps`.

    Raises:
        TrainingError: too few rows or groups, or too many tiers with verdicts.
    """
    recipe = recipe or Recipe()
    check(rows, tiers, recipe.folds)
    fitting = _Fitting(rows, tiers, recipe)
    chosen: dict[Tried, dict[str, Candidate]] = {}
    for tried in steps(rows, tiers):
        chosen[tried] = fitting.choose(tried)
        done()
    order = [tier for tier in tiers if tier in sought]
    means = dict(fitting.means)
    for tried in chosen:
        for tier in order:
            means.setdefault(tried | {tier}, fitting.at_its_word(tried, tier))
    return Fitted(
        heads={tried: {t: c.head for t, c in each.items()} for tried, each in chosen.items()},
        kappas={tried: _kappas(means, tried, order, tiers) for tried in chosen},
        chosen={tried: {t: c.name for t, c in each.items()} for tried, each in chosen.items()},
        held_out=means,
    )


def steps(rows: Sequence[JudgedPrompt], tiers: Sequence[str]) -> list[Tried]:
    """The sets of judged tiers that are fitted, smaller ones first.

    Raises:
        TrainingError: there would be too many.
    """
    judged = judged_of(rows, tiers)
    if len(judged) > MOST_JUDGED:
        raise TrainingError(
            f"{len(judged)} tiers have verdicts, and at most {MOST_JUDGED} can be learned from: "
            "leave out the verdicts of the dearest, which are hardly ever followed by another call"
        )
    return sets_of(judged)


def kappa(before: Matrix, after: Matrix, i: int, j: int, at: Index | slice = slice(None)) -> float:
    """Covariance of what a verdict of i does to i and j, per sqrt(v_i v_j), v = mean (1 - mean).

    Args:
        before: probabilities of shape (rows, tiers).
        after: those once i was judged as well.
        i: the tier judged.
        j: the tier whose mean moves.
        at: rows to look at.
    """
    was, moved = before[at], after[at] - before[at]
    apart = moved - moved.mean(axis=0)
    scale = float(np.sqrt(was * (1.0 - was))[:, [i, j]].prod(axis=1).sum())
    return float((apart[:, i] * apart[:, j]).sum()) / scale if scale > 0.0 else 0.0


def _kappas(
    means: Means, tried: Tried, sought: Sequence[str], tiers: Sequence[str]
) -> dict[Pair, float]:
    found = {}
    for judged in sought:
        if judged not in tried:
            i, after = tiers.index(judged), means[tried | {judged}]
            for j, moved in enumerate(tiers):
                value = kappa(means[tried], after, i, j)
                found[judged, moved] = short(min(1.0, max(-1.0, value)))
    return found


class _Fitting:
    """The rows with what they are told so far."""

    def __init__(self, rows: Sequence[JudgedPrompt], tiers: Sequence[str], recipe: Recipe) -> None:
        self.means: dict[Tried, Matrix] = {}
        self._rows = rows
        self._tiers = tiers
        self._most = recipe.features
        self._groups = groups_of(rows)
        self._folds = deal(self._groups, recipe.folds, recipe.seed)

    def choose(self, tried: Tried) -> dict[str, Candidate]:
        """The candidate of each tier; smaller sets come first, as the means build on theirs."""
        told = np.array([all(map(row.learned, tried)) for row in self._rows], dtype=bool)
        given = [row for row, is_told in zip(self._rows, told, strict=True) if is_told]
        order = [tier for tier in self._tiers if tier in tried]
        inputs = inputs_of(given, self._tiers, order)
        folds = within(self._folds, told)
        means = self._without(tried)
        found = {}
        for at, tier in enumerate(self._tiers):
            y = labels_of(given, tier)
            candidates = [
                *self._as_given(tried, tier, told),
                *logistic(given, y, inputs, self._most, folds),
            ]
            found[tier] = simplest(candidates, y, self._groups[told])
            means[told, at] = found[tier].held_out
        self.means[tried] = means
        if not tried:  # what is believed before verdicts is what they are held against
            self._rows = [
                replace(row, estimate=dict(zip(self._tiers, map(float, mean), strict=True)))
                for row, mean in zip(self._rows, means, strict=True)
            ]
        return found

    def at_its_word(self, tried: Tried, tier: str) -> Matrix:
        """What rows are told once this tier was judged as well, of which nothing was learned."""
        return np.array([self._said(at, {tier}, m) for at, m in enumerate(self.means[tried])])

    def _as_given(self, tried: Tried, tier: str, told: np.ndarray) -> list[Candidate]:
        """What needs no model: the estimate and the rate; after verdicts, these at their word."""
        rows, at = np.flatnonzero(told).tolist(), self._tiers.index(tier)
        if not tried:
            given = np.array([self._rows[row].estimate[tier] for row in rows])
            bare = rate(given[:, None], labels_of(self._rows, tier), self._folds)
            return [as_it_is("prior", Rule.PRIOR, given), bare]
        before = self.means[frozenset()]
        said = np.array([self._said(row, tried, before[row])[at] for row in rows])
        prior = as_it_is("prior", Rule.PRIOR, before[told, at])
        return [prior, as_it_is("verdict", Rule.VERDICT, said)]

    def _without(self, tried: Tried) -> Matrix:
        """What rows are told that lack one of the verdicts, or have a final one."""
        means = np.full((len(self._rows), len(self._tiers)), np.nan)
        for at, row in enumerate(self._rows):
            known = frozenset(tier for tier in tried if row.learned(tier))
            if known != tried:
                means[at] = self._said(at, tried - known, self.means[known][at])
        return means

    def _said(self, at: int, tried: Collection[str], means: Matrix) -> Matrix:
        """Means after a row's verdicts of these tiers at their word."""
        chances = dict(zip(self._tiers, means, strict=True))
        for tier in self._tiers:
            verdict = self._rows[at].verdicts.get(tier) if tier in tried else None
            if verdict is not None and verdict.score is not None:
                chances |= {**verdict.others, tier: verdict.score}
        return np.array([chances[tier] for tier in self._tiers])


def within(folds: Folds, told: np.ndarray) -> list[tuple[Index, Index]]:
    """The folds of all rows as folds of those that are told of."""
    place = np.cumsum(told) - 1
    return [(place[train[told[train]]], place[test[told[test]]]) for train, test in folds]
