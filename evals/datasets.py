"""Prompts with known answers, from JSON Lines files whose every mistake is named by its place.

One line is one prompt: id, kind, split, messages, max_tokens, reference, scorer, response_format
where the answer has to be JSON, and group where prompts are alike. What is fitted on one split is
shown on another, so no prompt and no group may be in two of them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cascade.errors import CascadeError
from cascade.types import ChatRequest, Json
from evals.scorers import SCORERS, TEXT_CHECKS

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
    if missing := known - row.keys() - {"response_format", "group"}:
        raise DatasetError(f"{place}: {min(missing)}: missing")
    for name, fault in _faults(row):
        raise DatasetError(f"{place}: {name}: {fault}, not {row[name]!r}")
    return Prompt(**row)


def _faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields at fault and what each must be."""
    scorer, limit = row["scorer"], row["max_tokens"]
    checks = (
        ("id", _is_name(row["id"]), "must be a text"),
        ("kind", _is_name(row["kind"]), "must be a text"),
        ("split", row["split"] in SPLITS, f"must be one of {', '.join(SPLITS)}"),
        ("scorer", scorer in tuple(SCORERS), f"must be one of {', '.join(SCORERS)}"),
        ("max_tokens", type(limit) is int and limit > 0, "must be a positive whole number"),
        ("messages", _are_messages(row["messages"]), "must be objects with role and content"),
        (
            "response_format",
            isinstance(row.get("response_format") or {}, dict),
            "must be an object",
        ),
        ("group", isinstance(row.get("group", ""), str), "must be a text"),
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
    if scorer == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if scorer == "choice":
        return isinstance(value, str) and value in {"A", "B", "C", "D"}
    if not isinstance(value, dict):
        return False
    suits = {
        "label": value.get("label") in (value.get("labels") or ()),
        "phrase": _are_texts(value.get("accept")),
        "text": _are_texts(value.get("accept")) or bool(value.keys() & TEXT_CHECKS.keys()),
        "code": _is_name(value.get("tests")),
    }
    return suits.get(scorer, True)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_name, value))
