"""How long a fitted panel takes to weigh an answer, beside scikit-learn on the same model.

    python -m benchmarks.panel [--calls N]

A blend of a logistic model and boosted trees is fitted to made-up answers with as many features as
the shipped panel has, and applied to one answer at a time: by `judges.fitted`, which is plain
Python on the artifact, and by the fitted models' `decision_function`, which is what their
`predict_proba` spends its time in. One thread. Both must agree.
"""

import argparse
import os
import platform
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from evals.panel_fit import JudgedRow, tabulate
from evals.panel_models import Blend, Boosted, Logistic
from evals.panel_models import Table as Rows
from judges.fitted import Artifact, Head, Manifest, PanelModel, model_of

FEATURES = 110
ANSWERS = 400
TREES = 150
AGREES_TO = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Microseconds of one call."""

    median: float
    p99: float


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=2_000)
    calls = parser.parse_args().calls
    answers = made_up()
    rows = tabulate(answers)
    labels = np.array([row.right["small"] for row in answers])
    blend = Blend(Logistic(0.03), Boosted(TREES))
    blend.fit(rows, labels)
    model = panel(rows, blend)
    table = Table(title=f"{FEATURES} features, {TREES} trees and a logistic model; one answer")
    for name in ("applied by", "median", "p99"):
        table.add_column(name, justify="right")
    for name, apply in (
        ("judges.fitted", lambda at: model(answers[at].features)["small"]),
        ("scikit-learn", lambda at: with_scikit_learn(blend, rows, at)),
    ):
        taken = timed(apply, calls)
        table.add_row(name, f"{taken.median:.0f} us", f"{taken.p99:.0f} us")
    for at, row in enumerate(answers[:50]):
        apart = abs(model(row.features)["small"] - with_scikit_learn(blend, rows, at))
        if apart > AGREES_TO:
            raise SystemExit(f"the two differ by {apart:.2g} on answer {at}")
    Console().print(table)
    Console().print(f"{platform.machine()}, {os.cpu_count()} cores, {calls} calls each")


def made_up() -> list[JudgedRow]:
    """Answers whose first features say something."""
    rng = random.Random(0)  # noqa: S311 - made-up data
    found = []
    for number in range(ANSWERS):
        features = {f"member.{at:03}": rng.gauss(0, 1) for at in range(FEATURES)}
        seen = features["member.000"] + features["member.001"] * features["member.002"]
        found.append(
            JudgedRow(
                prompt=str(number),
                kind="made up",
                group=str(number),
                split="fit",
                features=features,
                right={"small": seen + rng.gauss(0, 1) > 0},
                length=1.0,
            )
        )
    return found


def panel(rows: Rows, blend: Blend) -> PanelModel:
    """The fitted models as an artifact applies them."""
    manifest = Manifest(judged="small", models={}, members={}, data="", rows={}, fitted_at="")
    heads = {"small": Head(**blend.part())}
    return model_of(
        Artifact(kind="panel_model", manifest=manifest, features=list(rows.features), heads=heads)
    )


def with_scikit_learn(blend: Blend, rows: Rows, at: int) -> float:
    """The same probability by the libraries' own code, of one row."""
    one = rows.only(np.array([at]))
    log_odds = float(blend.log_odds(one)[0])
    return float(1.0 / (1.0 + np.exp(-log_odds)))


def timed(apply: Callable[[int], float], calls: int) -> Taken:
    """Of calls on one answer after another, after a few to warm up."""
    for at in range(20):
        apply(at)
    taken = []
    for call in range(calls):
        began = time.perf_counter()
        apply(call % ANSWERS)
        taken.append(time.perf_counter() - began)
    return Taken(median=share(taken, 0.5), p99=share(taken, 0.99))


def share(taken: Sequence[float], at: float) -> float:
    """A quantile, in microseconds."""
    return 1e6 * sorted(taken)[round(at * (len(taken) - 1))]


if __name__ == "__main__":
    main()
