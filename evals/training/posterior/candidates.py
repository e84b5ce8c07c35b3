"""What a tier's probability may be once certain tiers were judged, from the simplest on.

Each candidate is tried on groups that it was not fitted on. The simplest is taken that no other
beats by more than chance would: of a few hundred rows a richer model mostly learns their noise, and
what it then says of an answer is worse than the judge's own word.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from cascade.posterior import Head, Input
from cascade.posterior.heads import EDGE, Rule, Source
from evals.panel_choice import clearly, losses
from evals.panel_models import log_odds_of, short
from evals.training.posterior.rows import JudgedPrompt, Labels
from evals.training.rows import MIN_LABELS

Matrix = NDArray[np.float64]
Index = NDArray[np.intp]
Folds = Sequence[tuple[Index, Index]]

PENALTIES = (0.01, 0.1, 1.0)
"""Candidates for the inverse of the weight of the squared coefficients."""
LEAST_OF_EACH = 10
SAME = 1e-9


class Logistic:
    """L2-penalised logistic regression of a few numbers, some of which may be absent (NaN).

    Args:
        base: the first so many columns are always looked at.
        most: so many of the others as well, those that tell most of what the first leave open.
        c: inverse of the penalty's weight, per standard deviation.
    """

    def __init__(self, base: int, most: int, c: float) -> None:
        self._base = base
        self._most = most
        self._c = c

    def fit(self, x: Matrix, y: Labels) -> Self:
        """Learn from rows x of shape (rows, columns)."""
        self._absent = _means(x)
        filled = np.where(np.isnan(x), self._absent, x)
        self._columns = _varying(filled, range(self._base))
        self._regress(filled, y)
        if self._most and self._base < x.shape[1]:
            open_ = y - _sigmoid(self.log_odds(x))
            others = _varying(filled, range(self._base, x.shape[1]))
            self._columns += _closest(filled, open_, others)[: self._most]
            self._regress(filled, y)
        return self

    def log_odds(self, x: Matrix) -> Matrix:
        """One a row."""
        filled = np.where(np.isnan(x), self._absent, x)[:, self._columns]
        return np.asarray(filled @ self._weights + self._intercept)

    def head(self, inputs: Sequence[Input]) -> Head:
        """The fitted model as it is applied.

        Args:
            inputs: what the columns are.
        """
        weights = zip(self._columns, self._weights, strict=True)
        return Head(
            rule=Rule.LOGISTIC,
            intercept=short(self._intercept),
            inputs=tuple(_weighed(inputs[c], w, self._absent[c]) for c, w in weights),
        )

    def _regress(self, filled: Matrix, y: Labels) -> None:
        self._weights = np.zeros(len(self._columns))
        self._intercept = log_odds_of(y)
        if not self._columns or y.all() or not y.any():
            return
        x = filled[:, self._columns]
        centre, scale = x.mean(axis=0), x.std(axis=0)
        fitted = LogisticRegression(C=self._c, max_iter=2000).fit((x - centre) / scale, y)
        self._weights = fitted.coef_[0] / scale
        self._intercept = float(fitted.intercept_[0] - self._weights @ centre)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to come to a tier's probability.

    Attributes:
        name: "prior", "rate", "verdict", "scores" or "features".
        held_out: probability of each row by what was not fitted on its group.
        head: as it is applied; of a logistic model, fitted on all rows.
    """

    name: str
    held_out: Matrix
    head: Head


def as_it_is(name: str, rule: Rule, chances: Matrix) -> Candidate:
    """A candidate that takes a probability as it is given."""
    return Candidate(name=name, held_out=chances, head=Head(rule=rule))


def rate(x: Matrix, y: Labels, folds: Folds) -> Candidate:
    """The same for every request: an estimate that tells nothing apart is worth no more.

    Args:
        x: any numbers of the rows; they are not looked at.
        y: labels of the rows.
        folds: of the rows.
    """
    bare = Logistic(0, 0, 1.0)
    told = _sigmoid(_held_out(bare, x, y, folds))
    return Candidate(name="rate", held_out=told, head=bare.fit(x, y).head(()))


def logistic(
    rows: Sequence[JudgedPrompt],
    y: Labels,
    inputs: tuple[Sequence[Input], Sequence[Input]],
    most: int,
    folds: Folds,
) -> Iterator[Candidate]:
    """The logistic candidates, none where there are too few labels of a kind.

    Args:
        rows: to fit on.
        y: their labels.
        inputs: those that are always looked at, and those of which the best are.
        most: how many of the latter.
        folds: of the rows.
    """
    if min(int(y.sum()), int((~y).sum())) < LEAST_OF_EACH:
        return
    base, more = inputs
    x = numbers(rows, [*base, *more])
    for name, extra in (("scores", 0), ("features", most if more else 0)):
        if name == "scores" or extra:
            models = [Logistic(len(base), extra, c) for c in PENALTIES]
            tried = [(_held_out(model, x, y, folds), model) for model in models]
            told, model = min(tried, key=lambda each: float(losses(each[0], y).mean()))
            head = model.fit(x, y).head([*base, *more])
            yield Candidate(name=name, held_out=_sigmoid(told), head=head)


def simplest(candidates: Sequence[Candidate], y: Labels, groups: NDArray[np.str_]) -> Candidate:
    """The first that none beats by more than 1.645 standard errors of the difference in log loss.

    On fewer rows than anything can be learned from, the last that needs no fit.

    Args:
        candidates: from the simplest on.
        y: labels of the rows.
        groups: of the rows; a group counts as one.
    """
    if len(y) < MIN_LABELS:
        return [each for each in candidates if each.head.rule is not Rule.LOGISTIC][-1]
    lost = [log_loss(each.held_out, y) for each in candidates]
    best = min(lost, key=lambda each: float(each.mean()))
    for candidate, each in zip(candidates, lost, strict=True):
        if each is best or not clearly(each - best, groups):
            return candidate
    raise AssertionError("the best is beaten by none")


def log_loss(chances: Matrix, y: Labels) -> Matrix:
    """Of each row; probabilities are held away from 0 and 1 as in `cascade.posterior.heads`."""
    inside = np.clip(chances, EDGE, 1.0 - EDGE)
    return losses(np.log(inside / (1.0 - inside)), y)


def inputs_of(
    rows: Sequence[JudgedPrompt], tiers: Sequence[str], tried: Sequence[str]
) -> tuple[list[Input], list[Input]]:
    """What is there to look at: estimates and scores; and the verdicts' features."""
    base = [Input(source=Source.PRIOR, tier=tier) for tier in tiers]
    more: list[Input] = []
    for tier in tried:
        base.append(Input(source=Source.SCORE, tier=tier))
        said = [row.verdicts[tier] for row in rows if tier in row.verdicts]
        others = sorted({name for verdict in said for name in verdict.others} & set(tiers))
        base += [Input(source=Source.OTHER, tier=tier, name=name) for name in others]
        names = sorted({name for verdict in said for name in verdict.features})
        more += [Input(source=Source.FEATURE, tier=tier, name=name) for name in names]
    return base, more


def numbers(rows: Sequence[JudgedPrompt], inputs: Sequence[Input]) -> Matrix:
    """Of shape (rows, inputs); NaN where there is none."""
    found = [[each.number(row.estimate, row.verdicts) for each in inputs] for row in rows]
    return np.array(found, dtype=float).reshape(len(rows), len(inputs))


def _held_out(model: Logistic, x: Matrix, y: Labels, folds: Folds) -> Matrix:
    told = np.zeros(len(y))
    for train, test in folds:
        told[test] = model.fit(x[train], y[train]).log_odds(x[test])
    return told


def _weighed(what: Input, weight: float, absent: float) -> Input:
    return Input(
        source=what.source,
        tier=what.tier,
        name=what.name,
        weight=short(weight),
        absent=short(absent),
    )


def _means(x: Matrix) -> Matrix:
    """Of each column, without what is absent; 0 where all is."""
    known = ~np.isnan(x)
    return np.asarray(np.where(known, x, 0.0).sum(axis=0) / np.maximum(1, known.sum(axis=0)))


def _varying(filled: Matrix, columns: Sequence[int]) -> list[int]:
    spread = filled.std(axis=0)
    return [at for at in columns if spread[at] > SAME * max(1.0, abs(float(filled[0, at])))]


def _closest(filled: Matrix, target: Matrix, columns: Sequence[int]) -> list[int]:
    """By how closely they go with the target, the closest first; of a twin only the first."""
    found: dict[float, int] = {}
    for at in columns:
        with_it = abs(float(np.corrcoef(filled[:, at], target)[0, 1]))
        found.setdefault(round(0.0 if math.isnan(with_it) else with_it, 9), at)
    return [found[with_it] for with_it in sorted(found, reverse=True)]


def _sigmoid(log_odds: Matrix) -> Matrix:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -700, 700))))
