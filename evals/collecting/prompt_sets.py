"""Prompt sets of any origin: JSON Lines, CSV or Parquet, Hugging Face data sets, the audit log.

A row needs a prompt (a text) or messages; everything else has a default. Where a row says nothing
of its part, its group's name draws it.
"""

import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from evals.datasets import DatasetError, Prompt, faults
from evals.scorers import JUDGE, MODELLED, SCORERS
from evals.tables.columns import TableError
from evals.tables.reading import ABSENT, Raw, objects, read, turned
from evals.tables.splits import NAMES

HUB: Final = "hf:"
"""What a data set's name on Hugging Face begins with."""

FIELDS: Final = ("prompt", *(field.name for field in fields(Prompt)))
_PARSED: Final = ("messages", "max_tokens", "response_format")
"""Fields that are JSON, in a format that only has texts."""

_TEXTUAL: Final = ("choice", "exact", "regex", "similarity", "judge")
"""Scorers whose reference may be a plain text."""

LoadDataset = Callable[[str, str], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a set is read.

    Attributes:
        columns: the column by a prompt's field, where it is called otherwise.
        scorer: of prompts that name none.
        max_tokens: of prompts that state no limit.
    """

    columns: Mapping[str, str]
    scorer: str = "exact"
    max_tokens: int = 256


def fields_of(pairs: Sequence[str]) -> dict[str, str]:
    """Columns by a prompt's field, from texts such as "prompt=question".

    Raises:
        DatasetError: one is no such text, or names no field.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, _, column = pair.partition("=")
        if name not in FIELDS or not column:
            raise DatasetError(f"{pair!r} is not FIELD=COLUMN; the fields are {', '.join(FIELDS)}")
        found[name] = column
    return found


def prompt_set(
    source: str, reading: Reading, load_dataset: LoadDataset | None = None
) -> list[Prompt]:
    """The prompts of a file, or of a data set on Hugging Face as `hf:NAME[:CONFIG][@SPLIT]`.

    Args:
        source: where they are.
        reading: how they are read.
        load_dataset: gives rows by NAME[:CONFIG] and split; None: the package `datasets`.

    Raises:
        DatasetError: it cannot be read, or a row is no prompt; says which row and field.
    """
    try:
        raw = _raw(source, load_dataset or _from_hub)
    except TableError as error:
        raise DatasetError(error.message) from None
    return prompts_of(raw, reading)


def prompts_of(raw: Raw, reading: Reading) -> list[Prompt]:
    """The prompts of a table's rows.

    Raises:
        DatasetError: a column is missing, a row is no prompt, or an id is there twice.
    """
    named = {name: reading.columns.get(name, name) for name in FIELDS}
    for name, column in reading.columns.items():
        if not raw.has(column):
            there = ", ".join(raw.columns)
            raise DatasetError(f"{raw.path}: there is no column {column!r} for {name}; {there}")
    contents = {
        name: objects(raw.columns[column] if column in raw.columns else raw.values(column))
        for name, column in named.items()
        if raw.has(column)
    }
    seen: dict[str, int] = {}
    found = []
    for at in range(len(raw)):
        row = {name: values[at] for name, values in contents.items() if values[at] is not ABSENT}
        prompt = _prompt(raw.place(at), row, named, reading, str(at + 1))
        first = seen.setdefault(prompt.id, at)
        if first != at:
            raise DatasetError(
                f"{raw.place(at)}: {named['id']}: {prompt.id!r} is already that of "
                f"{raw.place(first)}"
            )
        found.append(prompt)
    return found


def _prompt(
    place: str, said: Mapping[str, Any], named: Mapping[str, str], reading: Reading, number: str
) -> Prompt:
    row = {name: value for name, value in said.items() if value not in (None, "")}
    for name in _PARSED:
        if isinstance(row.get(name), str):
            row[name] = _json(f"{place}: {named[name]}", row[name])
    if "messages" not in row:
        row["messages"] = _messages(place, row, named)
    row.pop("prompt", None)
    whole = {
        "id": number,
        "kind": "",
        "split": "",
        "group": "",
        "session": "",
        "response_format": None,
        "max_tokens": reading.max_tokens,
        "scorer": reading.scorer,
        "reference": None,
    } | row
    whole |= {name: str(whole[name]) for name in ("id", "kind", "split", "group", "session")}
    whole["reference"] = _reference(whole["scorer"], whole["reference"])
    if whole["split"] and whole["split"].lower() not in NAMES:
        raise DatasetError(
            f"{place}: {named['split']}: must be one of {', '.join(NAMES)}, not {whole['split']!r}"
        )
    for name, fault in faults(whole, (*SCORERS, *MODELLED)):
        if name not in {"kind", "split"}:
            raise DatasetError(f"{place}: {named[name]}: {fault}, not {whole[name]!r}")
    return Prompt(**whole)


def _messages(place: str, row: Mapping[str, Any], named: Mapping[str, str]) -> list[dict[str, Any]]:
    """A text is what a user says; a list is messages already."""
    prompt = row.get("prompt")
    if isinstance(prompt, list):
        return prompt
    if not isinstance(prompt, str):
        there = f"{named['prompt']!r} and {named['messages']!r}"
        raise DatasetError(f"{place}: there is no prompt: both {there} are missing or no text")
    return [{"role": "user", "content": prompt}]


def _reference(scorer: Any, value: Any) -> Any:
    """The reference as its scorer takes it, where a text stands for it."""
    if scorer in _TEXTUAL and isinstance(value, int | float):
        return str(value)
    if scorer in _TEXTUAL or not isinstance(value, str):
        return value
    if scorer == "number":
        value = value.replace(",", "").strip()
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _json(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{place}: not JSON: {error.msg}") from None


def _raw(source: str, load_dataset: LoadDataset) -> Raw:
    if not source.startswith(HUB):
        return read(Path(source))
    name, _, split = source.removeprefix(HUB).partition("@")
    raw = turned(Path(source), enumerate(map(dict, load_dataset(name, split or "train")), 1))
    if not len(raw):
        raise DatasetError(f"{source}: holds no rows")
    return raw


def _from_hub(name: str, split: str) -> Iterable[Mapping[str, Any]]:
    try:
        datasets = importlib.import_module("datasets")
    except ModuleNotFoundError:
        raise DatasetError(
            f"{HUB}{name}: data sets from Hugging Face need the package datasets: "
            "pip install datasets"
        ) from None
    path, _, part = name.partition(":")
    try:
        rows: Iterable[Mapping[str, Any]] = datasets.load_dataset(path, part or None, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        raise DatasetError(f"{HUB}{name}@{split}: cannot be loaded: {error}") from None
    return rows


def refuse_without_grader(prompts: Sequence[Prompt], grader: str | None) -> None:
    """Say before anything is asked that prompts need a judge and there is none.

    Raises:
        DatasetError: so it is.
    """
    wanting = next((prompt for prompt in prompts if prompt.scorer == JUDGE), None)
    if wanting is not None and grader is None:
        raise DatasetError(
            f"prompt {wanting.id}: the scorer {JUDGE!r} needs a model that compares answers: name "
            "its tier with --grader"
        )
