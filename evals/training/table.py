"""Outcome tables as rows that a model is trained on: requests and what each answer was worth."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cascade.types import ChatRequest
from classifiers.features import TAG
from evals.tables.answers import is_long, widened
from evals.tables.columns import Columns
from evals.tables.reading import read
from evals.tables.rows import optional
from evals.tables.splits import CHOOSE
from evals.tables.tiers import tier_columns
from evals.tables.values import conversations, numbers, texts

_LEFT_ALONE: Final = {CHOOSE: "calibrate"}
"""What a policy is chosen on is no more to be learned from than what a judge is calibrated on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table.

    Attributes:
        request: as if it had been sent.
        labels: how acceptable the answer was, in [0, 1], by tier; NaN where it is not known.
        group: rows that are alike share one.
        kind: what metrics are told apart by.
        split: "test" for rows that are only measured on; "calibrate" ones are left alone.
    """

    request: ChatRequest
    labels: Mapping[str, float]
    group: str
    kind: str = ""
    split: str = ""


def read_table(path: Path, mapping: Columns) -> list[Line]:
    """The rows of a table.

    Raises:
        TableError: it cannot be read, a column is missing, or a value is not what it must be; says
            on which line.
    """
    raw = read(path)
    if is_long(raw, mapping):
        raw, mapping = widened(raw, mapping)
    tiers = tier_columns(raw, mapping)
    labels = {tier: numbers(raw, column, most=1.0) for tier, column in tiers.items()}
    messages = conversations(raw, mapping.of("prompt"))
    groups, kinds, splits = (optional(raw, mapping, name) for name in ("group", "kind", "split"))
    tags = {
        name.removeprefix(TAG): texts(raw, column)
        for name, column in mapping.others.items()
        if name.startswith(TAG)
    }
    return [
        Line(
            request=ChatRequest(
                id=raw.place(at),
                messages=messages[at],
                tags={name: values[at] for name, values in tags.items()},
            ),
            labels={tier: float(values[at]) for tier, values in labels.items()},
            group=groups[at] or json.dumps(messages[at], sort_keys=True),
            kind=kinds[at],
            split=_LEFT_ALONE.get(splits[at], splits[at]),
        )
        for at in range(len(raw))
    ]
