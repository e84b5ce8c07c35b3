"""Prompts with known answers, from JSON Lines files whose every mistake is named by its place.

One line is one prompt: id, kind, split ("fit" or "show"), messages, max_tokens, reference, scorer,
and response_format where the answer has to be JSON. Thresholds are fixed on the fit half, results
are shown on the other one, and no prompt may be in both.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cascade.errors import CascadeError
from cascade.types import ChatRequest, Json
from evals.scorers import SCORERS

MIXED = Path(__file__).parent / "prompts" / "mixed.jsonl"
"""240 prompts of five kinds, half of them to fit and half to show."""

SPLITS = ("fit", "show")


class DatasetError(CascadeError):
    """A file of prompts cannot be used; says which, where and why."""

    code = "invalid_dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt and what a right answer is.

    Attributes:
        kind: what it asks for; results are reported by kind.
        split: "fit" or "show".
        reference: the right answer, in the form that its scorer takes.
        scorer: a name in `evals.scorers.SCORERS`.
        response_format: as OpenAI's request field; None for plain text.
    """

    id: str
    kind: str
    split: str
    messages: Sequence[Json]
    max_tokens: int
    reference: Any
    scorer: str
    response_format: Json | None = None

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
    """The file's prompts in order; of one half only when split names it.

    Raises:
        DatasetError: the file cannot be read, a line is not a valid prompt, an id appears twice, or
            the same messages are in both halves.
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
    halves: dict[str, tuple[str, int]] = {}
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
        asked = json.dumps(prompt.messages, sort_keys=True)
        half, first = halves.setdefault(asked, (prompt.split, number))
        if half != prompt.split:
            raise DatasetError(f"{place}: messages: the same as line {first}, in the other half")
        yield prompt


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
    if missing := known - row.keys() - {"response_format"}:
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


def _suits(scorer: str, reference: Any) -> bool:
    if scorer == "number":
        return isinstance(reference, int | float) and not isinstance(reference, bool)
    if scorer == "choice":
        return isinstance(reference, str) and reference in {"A", "B", "C", "D"}
    if not isinstance(reference, dict):
        return False
    return scorer == "json" or reference.get("label") in (reference.get("labels") or ())
