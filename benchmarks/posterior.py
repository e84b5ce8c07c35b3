"""How long it takes to say what is believed after verdicts.

    python -m benchmarks.posterior [--calls N]

A made-up posterior of three tiers, two of them judged, each head a logistic model of ten numbers:
estimates, scores, what verdicts say of other tiers, and features. One thread.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from cascade.posterior import Head, Identity, Input, Manifest, Model
from cascade.posterior.heads import Rule, Source
from cascade.posterior.model import sets_of
from cascade.types import Beliefs, Verdict

TIERS = ("small", "middle", "large")
FEATURES = tuple(f"member.feature_{number}" for number in range(110))


def main() -> None:
    """Measure what is done before any call, after one verdict and after two, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=20_000)
    calls = parser.parse_args().calls
    model, estimate = made_up(), Beliefs(mean=dict(zip(TIERS, (0.4, 0.6, 0.8), strict=True)))
    prior, said = model.before(estimate), verdict()
    table = Table(title="what is believed, of three tiers")
    for name in ("", "median", "p99"):
        table.add_column(name, justify="right")
    measured: dict[str, Callable[[], Beliefs]] = {
        "before any call": lambda: model.before(estimate),
        "after one verdict": lambda: model.after(prior, [("small", said)]),
        "after two": lambda: model.after(prior, [("small", said), ("middle", said)]),
    }
    for name, apply in measured.items():
        median, p99 = timed(apply, calls)
        table.add_row(name, f"{median:.0f} us", f"{p99:.0f} us")
    Console().print(table)
    Console().print(f"{platform.machine()}, {os.cpu_count()} cores, {calls} calls each")


def made_up() -> Model:
    """Heads of ten inputs, or of the three estimates before any verdict."""
    sets = sets_of(TIERS[:2])
    return Model(
        manifest=Manifest(
            models=dict.fromkeys(TIERS, ""),
            judges={},
            estimator=Identity(name=""),
            rates=dict.fromkeys(TIERS, 0.5),
        ),
        heads={tried: {tier: head(sorted(tried)) for tier in TIERS} for tried in sets},
        kappas={tried: {(i, j): 0.1 for i in TIERS[:2] for j in TIERS} for tried in sets},
    )


def head(tried: list[str]) -> Head:
    """A logistic one."""
    inputs = [Input(source=Source.PRIOR, tier=tier, weight=0.3) for tier in TIERS]
    for tier in tried:
        inputs.append(Input(source=Source.SCORE, tier=tier, weight=0.5))
        inputs.append(Input(source=Source.OTHER, tier=tier, name="large", weight=0.1))
    names = FEATURES[: 10 - len(inputs)] if tried else ()
    inputs += [Input(source=Source.FEATURE, tier=tried[0], name=n, weight=0.01) for n in names]
    return Head(rule=Rule.LOGISTIC, intercept=0.1, inputs=tuple(inputs))


def verdict() -> Verdict:
    """With as many features as the shipped panel's."""
    return Verdict(
        judge="sound", score=0.7, others={"large": 0.8}, features=dict.fromkeys(FEATURES, 1.0)
    )


def timed(apply: Callable[[], Beliefs], calls: int) -> tuple[float, float]:
    """Microseconds of one call: the median and the 99th percentile."""
    taken = []
    for _ in range(calls):
        begun = time.perf_counter()
        apply()
        taken.append((time.perf_counter() - begun) * 1e6)
    taken.sort()
    return taken[calls // 2], taken[calls * 99 // 100]


if __name__ == "__main__":
    main()
