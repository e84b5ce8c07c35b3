"""What is measured: jobs of one fit or cross-validation each, so that two cores share them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.routing_quality.scores import area, closed, of_beliefs, of_order
from benchmarks.routing_quality.tables import Tables, size
from classifiers.chances import Target
from classifiers.shape import shape
from evals.training.fit import HeadName, Recipe, apply, fit, held_out
from evals.training.fitters import folds, sample
from evals.training.measure import apgr, kind_gains, spread
from evals.training.rows import Matrix, Rows

HEADS: Final[Sequence[HeadName]] = get_args(HeadName)
TARGETS: Final[Sequence[Target]] = get_args(Target)
SECTIONS: Final = ("mmlu", "without", "unseen", "few", "transfer", "gsm8k", "nine")
FOLDS: Final = 5
INNER_FOLDS: Final = 2
"""Folds of the calibration inside each fit: five, as the product has, take twice as long."""
FEW: Final = 1_500
PRICES: Final = (0.0, 0.05, 0.2)
"""Quality that the price of a call of the largest model must bring."""
PARTS: Final = ("shape", "features", "embedding")
"""The numbers of `classifiers.shape`, all cheap features, and the embedding."""
OF_NINE: Final[Sequence[HeadName]] = ("linear", "neighbours", "topics", "forest", "blend")
OF_SUMS: Final[Sequence[HeadName]] = ("linear", "boosted", "forest", "blend")
_BEST = Recipe()
_SHAPE = frozenset(shape(""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One measurement.

    Attributes:
        section: one of SECTIONS.
        table: of Tables.
        tested: the table that is measured on, where it is another one.
        without: what is left out of the inputs, one of PARTS.
    """

    section: str
    table: str
    head: HeadName
    target: Target
    seed: int
    tested: str = ""
    without: str = ""

    @property
    def recipe(self) -> Recipe:
        """How it is fitted."""
        return Recipe(
            head=self.head,
            target=self.target,
            seed=self.seed,
            folds=INNER_FOLDS,
            inside=1.0,
            features=self.without != "features",
            components=0 if self.without == "embedding" else _BEST.components,
        )


def jobs(sections: Sequence[str], seeds: int) -> list[Job]:
    """All measurements of some sections, the longest first."""
    made = [job for seed in range(seeds) for job in _of_seed(seed)]
    slow = ("blend", "forest", "boosted")
    wanted = [job for job in made if job.section in sections]
    return sorted(wanted, key=lambda job: job.head not in slow)


def run(job: Job, tables: Tables) -> dict[str, Any]:
    """The job's own fields and what came out."""
    rows: Rows = getattr(tables, job.table)
    tested: Rows = getattr(tables, job.tested or job.table)
    if job.section == "transfer":
        means, _ = apply(fit(rows, job.recipe), tested)
    elif job.section == "few":
        at = sample(len(rows), FEW, job.seed)
        tested = rows.take(np.setdiff1d(np.arange(len(rows)), at))
        means, _ = apply(fit(rows.take(at), job.recipe), tested)
    else:
        across = unseen(rows) if job.section == "unseen" else _less(rows, job.without)
        means, _ = held_out(across, job.recipe, count=FOLDS, seed=job.seed)
    if job.section == "nine":
        return asdict(job) | _of_many(means, tested)
    found = asdict(job) | {"n": len(tested)} | of_beliefs(means, tested.labels)
    if not job.seed and not job.without and (job.head, job.target) == (_BEST.head, _BEST.target):
        groups = unseen(tested).groups if job.section == "unseen" else tested.groups
        found["interval"] = _interval(means[:, -1] - means[:, 0], tested.labels, groups)
        found["lead"] = _lead(means[:, -1] - means[:, 0], tested, groups)
    return found


def baselines(tables: Tables, sections: Sequence[str]) -> list[dict[str, Any]]:
    """What needs no model: random, the length of the text, a table of kinds, an oracle."""
    two = [name for name in ("mmlu", "gsm8k") if name in sections]
    names = [*two, *(["regraded"] if "gsm8k" in two else [])]
    found = [row for name in names for row in _baselines(name, getattr(tables, name))]
    return [*found, *(_of_nine(tables.nine) if "nine" in sections else [])]


def unseen(rows: Rows) -> Rows:
    """The rows with a whole kind (a subject) to a group, so that folds leave kinds out."""
    if rows.kinds is None:
        raise ValueError("these rows have no kinds to leave out")
    return replace(rows, groups=rows.kinds)


def _of_seed(seed: int) -> Iterator[Job]:
    for head, target in product(HEADS, TARGETS):
        yield Job(section="mmlu", table="mmlu", head=head, target=target, seed=seed)
    some: Sequence[HeadName] = ("linear", "blend")
    for head, target, table in product(OF_SUMS, TARGETS, ("gsm8k", "regraded")):
        yield Job(section="gsm8k", table=table, head=head, target=target, seed=seed)
    for head in some:
        best = {"head": head, "target": _BEST.target, "seed": seed}
        yield Job(section="unseen", table="mmlu", **best)  # type: ignore[arg-type]
        yield Job(section="few", table="mmlu", **best)  # type: ignore[arg-type]
        for tested in ("gsm8k", "regraded"):
            yield Job(section="transfer", table="mmlu", tested=tested, **best)  # type: ignore[arg-type]
        yield Job(section="transfer", table="regraded", tested="mmlu", **best)  # type: ignore[arg-type]
    for part in PARTS:
        yield Job(
            section="without",
            table="mmlu",
            head=_BEST.head,
            target=_BEST.target,
            seed=seed,
            without=part,
        )
    for head in OF_NINE:
        yield Job(section="nine", table="nine", head=head, target=_BEST.target, seed=seed)


def _less(rows: Rows, part: str) -> Rows:
    if part != "shape":
        return rows
    kept = [
        {name: value for name, value in each.items() if name not in _SHAPE}
        for each in rows.features
    ]
    return replace(rows, features=kept)


def _of_many(means: Matrix, rows: Rows) -> dict[str, Any]:
    costs = _costs(rows)

    def share(at: NDArray[np.intp]) -> float:
        return closed(means[at], rows.labels[at], costs, 0.0)["closed"]

    return {
        "prices": {str(price): dict(closed(means, rows.labels, costs, price)) for price in PRICES},
        "interval": list(spread(share, rows.groups)),
    }


def _costs(rows: Rows) -> Matrix:
    sizes = np.array([size(name) for name in rows.tiers])
    return np.asarray(sizes / sizes.max())


def _interval(order: Matrix, labels: Matrix, groups: NDArray[np.str_]) -> list[float]:
    return list(spread(lambda at: apgr(order[at], labels[at, 0], labels[at, -1]), groups))


def _lead(order: Matrix, rows: Rows, groups: NDArray[np.str_]) -> list[float]:
    """Interval of the APGR gained over the length rule, rows drawn in pairs."""
    length, labels = rows.lengths, rows.labels

    def gained(at: NDArray[np.intp]) -> float:
        weak, strong = labels[at, 0], labels[at, -1]
        return apgr(order[at], weak, strong) - apgr(length[at], weak, strong)

    return list(spread(gained, groups))


def _baselines(name: str, rows: Rows) -> Iterator[dict[str, Any]]:
    weak, strong = rows.labels[:, 0], rows.labels[:, -1]
    orders = {"random": np.zeros(len(rows)), "length": rows.lengths}
    if rows.kinds is not None:
        looked_up = np.zeros(len(rows))
        for train, test in folds(rows.groups, FOLDS, 0):
            gains = kind_gains(rows.take(train), rows.take(test))
            looked_up[test] = 0.0 if gains is None else gains
        orders["table of true kinds, held out"] = looked_up
        seen = kind_gains(rows, rows)
        orders["table of true kinds, its own rows"] = looked_up if seen is None else seen
    orders["oracle"] = strong - weak
    wrong = weak < 0.5  # noqa: PLR2004 - right or wrong
    for head, order in orders.items():
        found: Mapping[str, Any] = {
            "section": "baselines",
            "table": name,
            "head": head,
            "n": len(rows),
        }
        areas = {
            "auc_weak_wrong": area(order, wrong),
            "auc_gain": area(order, wrong & (strong >= 0.5)),  # noqa: PLR2004 - as above
        }
        interval = _interval(order, rows.labels, rows.groups)
        yield {**found, **of_order(order, rows.labels), **areas, "interval": interval}


def _of_nine(rows: Rows) -> Iterator[dict[str, Any]]:
    table = np.zeros_like(rows.labels)
    kinds = rows.kinds if rows.kinds is not None else rows.groups
    for train, test in folds(rows.groups, FOLDS, 0):
        for kind in np.unique(kinds[test]):
            known = rows.labels[train][kinds[train] == kind]
            some = test[kinds[test] == kind]
            table[some] = known.mean(axis=0) if len(known) else rows.labels[train].mean(axis=0)
    single = np.broadcast_to(rows.labels.mean(axis=0), rows.labels.shape)
    named = {"best single model": single, "table of true tasks": table, "oracle": rows.labels}
    for head, means in named.items():
        yield {"section": "baselines", "table": "nine", "head": head, **_of_many(means, rows)}
