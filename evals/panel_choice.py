"""Which model the rows bear out for a head of a panel.

The one with the smallest cross-validated log loss is taken, but only where it beats the bare rate
by more than chance would: a model that was fitted to chance sends the wrong answers up, and the
bare rate those that are doubted most. What a head looks at is chosen in the same way: what was
asked for tells where a larger model fails, if anything does, and can drown what tells whether an
answer is right.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold

from evals.panel_models import Blend, Boosted, Labels, Logistic, Matrix, Model, Rate, Table
from judges.fitted import LEAF, Tree

FOLDS: Final = 5
ERRORS: Final = 1.645
"""Standard errors that a normal value exceeds once in twenty times."""
REPEATS: Final = 3
"""How often rows are dealt into folds anew where they are few: one deal decides much by chance."""
MANY: Final = 500
KINDS: Final = ("auto", "logistic", "boosted", "blend")
PENALTIES: Final = (0.003, 0.01, 0.03, 0.1, 0.3)
ROUNDS: Final = (30, 75, 150)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A kind of model, and the values that it looks at.

    Attributes:
        model: of that kind; not yet fitted to all rows.
        columns: of the table.
        held_out: log-odds of each row by models that had not seen its group, a line a deal.
    """

    model: Model
    columns: Sequence[int]
    held_out: Matrix

    def fit(self, table: Table, labels: Labels) -> None:
        """Fit the model to all rows."""
        self.model.fit(table.narrowed(self.columns), labels)

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        return self.model.log_odds(table.narrowed(self.columns))

    def part(self, width: int) -> dict[str, Any]:
        """What it adds to a head that is given so many values."""
        part = self.model.part()
        if weights := part.get("weights"):
            spread = dict(zip(self.columns, weights, strict=True))
            part["weights"] = [spread.get(column, 0.0) for column in range(width)]
        part["trees"] = [_over(tree, self.columns) for tree in part.get("trees", ())]
        return part


def choose(
    table: Table, labels: Labels, kind: str, seed: int, choices: Sequence[Sequence[int]] = ()
) -> Chosen:
    """The model of a kind that does best on rows it has not seen, or else the bare rate.

    Args:
        table: of at least as many groups as there are folds.
        labels: of both classes.
        kind: one of `KINDS`; "auto" tries all.
        seed: of the deals.
        choices: sets of columns to look at, of which the best is taken; all of them if none given.
    """
    repeats = REPEATS if len(labels) < MANY else 1
    deals = [list(folds(table, labels, seed + deal)) for deal in range(repeats)]
    rate = _tried(Rate(), (), table, labels, deals)
    everything = range(table.raw.shape[1])
    tried = [
        each
        for columns in choices or [everything]
        for each in _candidates(table, columns, labels, kind, deals)
    ]
    best = _best(tried, labels)
    gain = losses(rate.held_out, labels) - losses(best.held_out, labels)
    return best if clearly(gain, table.groups) else rate


def folds(
    table: Table, labels: Labels, seed: int
) -> Iterator[tuple[NDArray[np.int_], NDArray[np.int_]]]:
    """Rows to fit on and rows to try on, a group never on both sides."""
    dealt = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    yield from dealt.split(table.standard, labels, table.groups)


def losses(log_odds: Matrix, labels: Labels) -> Matrix:
    """Log loss of each row, the mean over deals where there are several."""
    signed = np.where(labels, log_odds, -log_odds)
    loss = np.logaddexp(0.0, -signed)
    return loss if loss.ndim == 1 else loss.mean(axis=0)


def clearly(gain: Matrix, groups: NDArray[np.str_]) -> bool:
    """Whether chance gives such a gain less than once in twenty times; a group counts as one."""
    _, at = np.unique(groups, return_inverse=True)
    deviation = np.bincount(at, weights=gain - gain.mean())
    error = math.sqrt(float((deviation**2).sum())) / len(gain)
    return bool(gain.mean() > ERRORS * error)


def _candidates(
    table: Table, columns: Sequence[int], labels: Labels, kind: str, deals: Sequence[Any]
) -> list[Chosen]:
    """Every model of the kind that looks at these columns."""
    logistic, boosted = [], []
    if kind != "boosted":
        logistic = [_tried(Logistic(c), columns, table, labels, deals) for c in PENALTIES]
    if kind != "logistic":
        boosted = _boosted(columns, table, labels, deals)
    if kind not in {"blend", "auto"}:
        return logistic + boosted
    blend = _blend(_best(logistic, labels), _best(boosted, labels))
    return [blend] if kind == "blend" else [*logistic, *boosted, blend]


def _best(tried: Sequence[Chosen], labels: Labels) -> Chosen:
    return min(tried, key=lambda each: float(losses(each.held_out, labels).mean()))


def _blend(first: Chosen, second: Chosen) -> Chosen:
    """The mean of what each said is what the blend would have said."""
    held_out = (first.held_out + second.held_out) / 2
    return Chosen(Blend(first.model, second.model), first.columns, held_out)


def _tried(
    model: Model, columns: Sequence[int], table: Table, labels: Labels, deals: Sequence[Any]
) -> Chosen:
    held_out = np.zeros((len(deals), len(labels)))
    narrow = table.narrowed(columns)
    for deal, split in enumerate(deals):
        for train, test in split:
            model.fit(narrow.only(train), labels[train])
            held_out[deal, test] = model.log_odds(narrow.only(test))
    return Chosen(model, columns, held_out)


def _boosted(
    columns: Sequence[int], table: Table, labels: Labels, deals: Sequence[Any]
) -> list[Chosen]:
    """All sizes at once: what more rounds add comes after what fewer have said."""
    held_out = np.zeros((len(ROUNDS), len(deals), len(labels)))
    narrow = table.narrowed(columns)
    for deal, split in enumerate(deals):
        for train, test in split:
            model = Boosted(max(ROUNDS))
            model.fit(narrow.only(train), labels[train])
            for size, log_odds in enumerate(model.stages(narrow.only(test), ROUNDS)):
                held_out[size, deal, test] = log_odds
    return [Chosen(Boosted(rounds), columns, held_out[at]) for at, rounds in enumerate(ROUNDS)]


def _over(tree: Tree, columns: Sequence[int]) -> Tree:
    """A tree over some columns as one over all."""
    looked = [LEAF if feature == LEAF else columns[feature] for feature in tree.feature]
    return tree.model_copy(update={"feature": looked})
