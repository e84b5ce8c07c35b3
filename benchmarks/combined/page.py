"""What was measured as tables of Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from benchmarks.combined.routed import (
    CONFIDENCE,
    RATIOS,
    RIVALS,
    WAYS,
    areas,
    drawn,
)
from benchmarks.combined.told import Told
from evals.training.rows import Matrix, Rows

TITLES: Final[Mapping[str, str]] = {
    "graded": "As graded in the source",
    "without": "Without the rows whose grade is wrong",
    "regraded": "Regraded by value",
}
Record = Mapping[str, Any]


def record(grading: str, seed: int, rows: Rows, found: Told) -> Record:
    """What comes out of one grading and seed; intervals are taken for the first seed alone."""
    weights = drawn(rows.groups)
    return {
        "grading": grading,
        "seed": seed,
        "n": len(found),
        "right": found.labels.mean(axis=0).tolist(),
        "ratios": {f"{r:g}": _at(found, r, None if seed else weights) for r in RATIOS},
    }


def tables(records: Sequence[Record]) -> str:
    """All gradings, each with what is combined beside the better rival."""
    parts = [
        "\n".join(_table(title, [each for each in records if each["grading"] == grading]))
        for grading, title in TITLES.items()
        if any(each["grading"] == grading for each in records)
    ]
    return "\n\n".join(parts)


def _at(found: Told, ratio: float, weights: Matrix | None) -> Record:
    """Areas; where there are weights, also their intervals and that of the combined lead."""
    routes = {name: way(found, ratio) for name, way in WAYS.items()}
    once = np.ones((1, len(found)))
    values = {n: float(areas(r, found.labels, ratio, once)[0]) for n, r in routes.items()}
    if weights is None:
        return {"areas": values}
    many = {n: areas(r, found.labels, ratio, weights) for n, r in routes.items()}
    lead = many["combined"] - many[max(RIVALS, key=lambda name: values[name])]
    return {
        "areas": values,
        "intervals": {name: _ends(some) for name, some in many.items()},
        "lead": _ends(lead),
    }


def _ends(values: Matrix) -> list[float]:
    tail = (1.0 - CONFIDENCE) / 2.0
    return [float(end) for end in np.nanquantile(values, [tail, 1.0 - tail])]


def _table(title: str, records: Sequence[Record]) -> Iterator[str]:
    weak, strong = records[0]["right"]
    ratios = list(records[0]["ratios"])
    yield f"{title} (n = {records[0]['n']}, weak {weak:.1%} right, strong {strong:.1%}):"
    yield ""
    yield f"| price ratio | {' | '.join(ratios)} |"
    yield "|---|" + "---|" * len(ratios)
    for name in WAYS:
        yield f"| {name} | {' | '.join(_cell(records, ratio, name) for ratio in ratios)} |"
    leads = (_lead(records, ratio) for ratio in ratios)
    yield f"| *combined over the best of the others* | {' | '.join(leads)} |"


def _cell(records: Sequence[Record], ratio: str, name: str) -> str:
    values = [each["ratios"][ratio]["areas"][name] for each in records]
    mean = float(np.mean(values))
    off = max(abs(value - mean) for value in values)
    low, high = records[0]["ratios"][ratio]["intervals"][name]
    return f"{mean:.3f} ±{off:.3f} ({low:.3f} to {high:.3f})"


def _lead(records: Sequence[Record], ratio: str) -> str:
    """The mean over seeds less that of the best rival, and the interval of the first seed's."""
    means = {
        name: float(np.mean([each["ratios"][ratio]["areas"][name] for each in records]))
        for name in WAYS
    }
    lead = means["combined"] - max(means[name] for name in RIVALS)
    low, high = records[0]["ratios"][ratio]["lead"]
    return f"{lead:+.3f} ({low:+.3f} to {high:+.3f})"
