"""Tables with a row for each answer, brought to a row for each prompt."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from evals.tables.columns import (
    MEASURES,
    QUALITY,
    SHARES,
    SINGLE,
    TIER,
    TOKENS,
    Columns,
    TableError,
)
from evals.tables.reading import Raw, objects
from evals.tables.values import column_of, conversations, numbers, texts


def is_long(raw: Raw, mapping: Columns) -> bool:
    """Whether each row is an answer: it has a column for the tier and one for the quality."""
    return TIER in mapping.others or (raw.has(TIER) and raw.has(mapping.of(QUALITY)))


def widened(raw: Raw, mapping: Columns) -> tuple[Raw, Columns]:
    """The table with a row a prompt, its columns called as ours.

    Rows of one id, or of one prompt where there are no ids, are answers to the same prompt. A tier
    that did not answer it has no value there. The mapping's tiers are what the column of tiers says
    by the name that they are to have.

    Raises:
        TableError: a row names no known tier, answers a prompt twice for one tier, or holds a value
            that is none; says which row and column.
    """
    keys, tiers = _keys(raw, mapping), _tiers(raw, mapping)
    _refuse_repeated(raw, keys, tiers)
    firsts: dict[str, int] = {}
    for at, name in enumerate(keys):
        firsts.setdefault(name, at)
    rows = {name: number for number, name in enumerate(firsts)}
    columns: dict[str, list[Any]] = {}
    for name in SINGLE:
        column = column_of(raw, mapping, name)
        if column is not None:
            values = objects(raw.values(column))
            columns[name] = [values[at] for at in firsts.values()]
    names = list(mapping.tiers or dict.fromkeys(tiers))
    for measure, values in _measures(raw, mapping).items():
        columns |= {f"{measure}.{tier}": [None] * len(rows) for tier in names}
        for name, tier, value in zip(keys, tiers, values, strict=True):
            columns[f"{measure}.{tier}"][rows[name]] = value
    lines = [raw.lines[at] for at in firsts.values()] if raw.lines else ()
    wide = Raw(path=raw.path, columns=columns, lines=lines)
    return wide, Columns(tiers={tier: f"{QUALITY}.{tier}" for tier in mapping.tiers})


def _keys(raw: Raw, mapping: Columns) -> list[str]:
    """What rows of one prompt share: their id, or the prompt."""
    column = column_of(raw, mapping, "id")
    if column is not None:
        return texts(raw, column)
    return [json.dumps(messages) for messages in conversations(raw, mapping.of("prompt"))]


def _measures(raw: Raw, mapping: Columns) -> dict[str, Sequence[Any]]:
    """The columns that are there, each checked where its faults still have their row."""
    found: dict[str, Sequence[Any]] = {}
    for name in (*MEASURES, *TOKENS):
        column = mapping.of(name) if name == QUALITY else column_of(raw, mapping, name)
        if column is not None:
            numbers(raw, column, most=1.0 if name in SHARES else math.inf)
            found[name] = objects(raw.values(column))
    return found


def _refuse_repeated(raw: Raw, keys: Sequence[str], tiers: Sequence[str]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for at, (name, tier) in enumerate(zip(keys, tiers, strict=True)):
        first = seen.setdefault((name, tier), at)
        if first != at:
            raise TableError(
                f"{raw.place(at)}: tier {tier!r} has already answered {name[:60]}, at "
                f"{raw.place(first)}"
            )


def _tiers(raw: Raw, mapping: Columns) -> list[str]:
    """The tier of each row, by its name here."""
    column = mapping.of(TIER)
    named: Mapping[str, str] = {said: tier for tier, said in mapping.tiers.items()}
    found = texts(raw, column)
    for at, said in enumerate(found):
        if not said or (named and said not in named):
            known = f"; the tiers are {', '.join(named)}" if named else ""
            raise TableError(f"{raw.place(at)}: {column}: there is no tier {said!r}{known}")
    return [named.get(said, said) for said in found]
