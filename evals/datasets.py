"""Prompts with known answers, from JSON Lines files whose every mistake is named by its place.

One line is one prompt: id, kind, split, messages, max_tokens, reference, scorer, response_format
where the answer has to be JSON, and group where prompts are alike. What is fitted on one split is
shown on another, so no prompt and no group may be in two of them.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cascade.errors import CascadeError
from cascade.types import ChatRequest, Json
from evals.scorers import JUDGE, SCORERS, SIMILARITY, TEXT_CHECKS, suits_schema

MIXED = Path(__file__).parent / "prompts" / "mixed.jsonl"
"""240 prompts of five kinds, half of them to fit and half to show."""

TASKS = Path(__file__).parent / "prompts" / "tasks.jsonl"
"""Prompts of six kinds in groups, to fit, to calibrate and to test."""

SPLITS = ("fit", "calibrate", "test", "show")


class DatasetError(CascadeError):
    """A file of prompts cannot be used; says which, where and why."""

    code = "invalid_dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt and what a right answer is.

    Attributes:
        kind: what it asks for; results are reported by kind.
        split: one of SPLITS.
        reference: the right answer, in the form that its scorer takes.
        scorer: a name in `evals.scorers.SCORERS`.
        response_format: as OpenAI's request field; None for plain text.
        group: prompts that are alike share one; empty for a prompt that is like no other.
        session: the conversation that it is a turn of, its turns in their order; empty for none.
    """

    id: str
    kind: str
    split: str
    messages: Sequence[Json]
    max_tokens: int
    reference: Any
    scorer: str
    response_format: Json | None = None
    group: str = ""
    session: str = ""

    def params(self) -> dict[str, Any]:
        """The request's parameters besides messages: greedy, so that a run can be repeated."""
        params: dict[str, Any] = {"temperature": 0, "max_tokens": self.max_tokens}
        if self.response_format is not None:
            params["response_format"] = self.response_format
        return params

    def request(self) -> ChatRequest:
        """The prompt as the domain's request, for backends and judges that are asked directly."""
        return ChatRequest(id=self.id, messages=self.messages, params=self.params())

    def right(self, answer: str) -> bool:
        """Whether its scorer takes the answer for right."""
        return SCORERS[self.scorer](answer, self.reference)


def load(path: Path = MIXED, *, split: str | None = None) -> list[Prompt]:
    """The file's prompts in order; of one split only when it is named.

    Raises:
        DatasetError: the file cannot be read, a line is not a valid prompt, an id appears twice, or
            the same messages or the same group are in two splits.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: cannot be read: {error}") from None
    prompts = list(_prompts(path, text))
    if not prompts:
        raise DatasetError(f"{path}: holds no prompts")
    return [prompt for prompt in prompts if split in (None, prompt.split)]


def _prompts(path: Path, text: str) -> Iterator[Prompt]:
    ids: dict[str, int] = {}
    asked: dict[str, tuple[str, int]] = {}
    groups: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        prompt = _prompt(place, _object(place, line))
        if prompt.id in ids:
            raise DatasetError(
                f"{place}: id: {prompt.id!r} is already that of line {ids[prompt.id]}"
            )
        ids[prompt.id] = number
        _keep_apart(place, "messages", asked, json.dumps(prompt.messages, sort_keys=True), prompt)
        if prompt.group:
            _keep_apart(place, "group", groups, prompt.group, prompt)
        yield prompt


def _keep_apart(
    place: str, field: str, seen: dict[str, tuple[str, int]], value: str, prompt: Prompt
) -> None:
    """Refuse a value that an earlier line has in another split."""
    number = int(place.rpartition(":")[2])
    split, first = seen.setdefault(value, (prompt.split, number))
    if split != prompt.split:
        raise DatasetError(
            f"{place}: {field}: the same as line {first}, which is in the split {split!r}"
        )


def _object(place: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DatasetError(f"{place}:{error.colno}: not JSON: {error.msg}") from None
    if not isinstance(row, dict):
        raise DatasetError(f"{place}: a line must be a JSON object")
    return row


def _prompt(place: str, row: Mapping[str, Any]) -> Prompt:
    known = {field.name for field in fields(Prompt)}
    if unknown := row.keys() - known:
        raise DatasetError(f"{place}: {min(unknown)}: no such field")
    if missing := known - row.keys() - {"response_format", "group", "session"}:
        raise DatasetError(f"{place}: {min(missing)}: missing")
    for name, fault in faults(row):
        raise DatasetError(f"{place}: {name}: {fault}, not {row[name]!r}")
    return Prompt(**row)


def faults(
    row: Mapping[str, Any], scorers: Sequence[str] = tuple(SCORERS)
) -> Iterator[tuple[str, str]]:
    """The fields at fault and what each must be.

    Args:
        row: has all fields.
        scorers: those that a prompt may name.
    """
    scorer, limit = row["scorer"], row["max_tokens"]
    checks = (
        ("id", _is_name(row["id"]), "must be a text"),
        ("kind", _is_name(row["kind"]), "must be a text"),
        ("split", row["split"] in SPLITS, f"must be one of {', '.join(SPLITS)}"),
        ("scorer", scorer in scorers, f"must be one of {', '.join(scorers)}"),
        ("max_tokens", type(limit) is int and limit > 0, "must be a positive whole number"),
        ("messages", _are_messages(row["messages"]), "must be objects with role and content"),
        (
            "response_format",
            isinstance(row.get("response_format") or {}, dict),
            "must be an object",
        ),
        ("group", isinstance(row.get("group", ""), str), "must be a text"),
        ("session", isinstance(row.get("session", ""), str), "must be a text"),
        ("reference", _suits(scorer, row["reference"]), f"must suit the scorer {scorer!r}"),
    )
    return ((name, must) for name, holds, must in checks if not holds)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and {"role", "content"} <= one.keys() for one in value)
    )


def _suits(scorer: str, value: Any) -> bool:
    checks: Mapping[str, Callable[[Any], bool]] = {
        "number": lambda one: (
            isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one)
        ),
        "choice": lambda one: isinstance(one, str) and one in {"A", "B", "C", "D"},
        "label": lambda one: (
            _has(one, "label") and _are_texts(one.get("labels")) and one["label"] in one["labels"]
        ),
        "json": lambda one: isinstance(one, dict),
        "phrase": lambda one: _has(one, "accept") and _are_texts(one["accept"]),
        "text": lambda one: (
            isinstance(one, dict)
            and (_are_texts(one["accept"]) if "accept" in one else _are_checks(one))
        ),
        "code": lambda one: _has(one, "tests") and _is_name(one["tests"]),
        "exact": lambda one: isinstance(one, str),
        "regex": _is_pattern,
        "schema": suits_schema,
        SIMILARITY: lambda one: (
            _is_name(one)
            or (_has(one, "text") and _is_name(one["text"]) and _is_share(one.get("at_least")))
        ),
        JUDGE: lambda one: one is None or _is_name(one),
    }
    return scorer not in checks or checks[scorer](value)


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key in value


def _is_pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return isinstance(value, str)


def _are_checks(reference: Mapping[str, Any]) -> bool:
    """Whether it states checks of the scorer `text`, which can all be made."""
    checks = reference.keys() & TEXT_CHECKS.keys()
    try:
        return bool(checks) and all(
            TEXT_CHECKS[name]("", reference[name]) in {True, False} for name in checks
        )
    except (TypeError, re.error):
        return False


def _is_share(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and 0.0 <= value <= 1.0)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_name, value))
