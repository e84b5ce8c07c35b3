"""Putting streamed pieces together, and showing the client only what it asked for.

A streamed answer arrives as chunk choices in OpenAI's shape. Here they are merged into whole
choices, for judges and for the audit row of an answer that was cut; and what a judge had asked for
upstream is taken out again before the client sees it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cascade.types import ChatRequest, Choice, Json

_KNOWN = frozenset({"content", "tool_calls", "role"})
_UNSAID = frozenset({"id", "index", "role", "type"})
_LONGEST_PIECE = 8
"""Characters a piece that are more than one token's: with 4 a token on average, two together."""


@dataclass(slots=True)
class _Draft:
    """One choice while its pieces come in."""

    text: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    logprobs: list[Json] | None = None
    finish_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def add(self, piece: Json) -> None:
        delta = piece.get("delta") or {}
        if delta.get("content"):
            self.text.append(delta["content"])
        for call in delta.get("tool_calls") or ():
            merge(self.calls.setdefault(call.get("index", 0), {}), call)
        for name in delta.keys() - _KNOWN:
            merge(self.extra, {name: delta[name]})
        entries = (piece.get("logprobs") or {}).get("content")
        if entries is not None:
            self.logprobs = [*(self.logprobs or ()), *entries]
        self.finish_reason = piece.get("finish_reason") or self.finish_reason

    def choice(self) -> Choice:
        calls = [dict(self.calls[index]) for index in sorted(self.calls)]
        for call in calls:
            call.pop("index", None)
        return Choice(
            text="".join(self.text),
            tool_calls=tuple(calls),
            finish_reason=self.finish_reason,
            logprobs=self.logprobs,
            extra=self.extra,
        )


def assemble(chunks: Iterable[Sequence[Json]]) -> tuple[Choice, ...]:
    """The choices that a stream's chunks add up to, in the order of their index; at least one."""
    drafts: dict[int, _Draft] = {}
    for choices in chunks:
        for piece in choices:
            drafts.setdefault(piece.get("index", 0), _Draft()).add(piece)
    return tuple(drafts[index].choice() for index in sorted(drafts)) or (Choice(),)


def has_content(choices: Sequence[Json]) -> bool:
    """Whether a chunk carries any of the answer, beyond the role and the end.

    A token that is only part of a character comes with a log probability and without text.
    """
    for piece in choices:
        for name, value in (piece.get("delta") or {}).items():
            if value and name != "role":
                return True
        if (piece.get("logprobs") or {}).get("content"):
            return True
    return False


def is_answer(choices: Sequence[Json]) -> bool:
    """Whether a chunk carries any of the answer, if only its end."""
    return has_content(choices) or any(piece.get("finish_reason") for piece in choices)


def tokens(chunks: Iterable[Sequence[Json]]) -> int:
    """How many tokens have come: an estimate for an answer that was cut before it said.

    Every log probability is one token. Without them a piece is one, as most model servers send
    them, unless the pieces are too long for that: then a token is four characters.
    """
    scored = pieces = letters = 0
    for choices in chunks:
        for piece in choices:
            if entries := (piece.get("logprobs") or {}).get("content"):
                scored += len(entries)
            elif length := _letters(piece.get("delta")):
                pieces += 1
                letters += length
    return scored + (pieces if letters <= pieces * _LONGEST_PIECE else -(-letters // 4))


def characters(choices: Sequence[Json]) -> int:
    """How much text a chunk carries."""
    count = 0
    for piece in choices:
        count += len((piece.get("delta") or {}).get("content") or "")
    return count


def presented(request: ChatRequest, choices: Sequence[Json]) -> Sequence[Json]:
    """Chunk choices as the client asked for them: log probabilities only if it wanted them."""
    for piece in choices:
        if "logprobs" in piece:
            return [_presented(request, each) for each in choices]
    return choices


def _presented(request: ChatRequest, piece: Json) -> Json:
    if not request.params.get("logprobs"):
        return {name: value for name, value in piece.items() if name != "logprobs"}
    if not piece.get("logprobs"):
        return piece
    return {**piece, "logprobs": presented_logprobs(request, piece["logprobs"])}


def presented_logprobs(request: ChatRequest, logprobs: Json) -> Json:
    """Log probabilities cut to as many alternatives as the client asked for."""
    top = request.params.get("top_logprobs") or 0
    entries = [
        {**entry, "top_logprobs": (entry.get("top_logprobs") or [])[:top]}
        for entry in logprobs.get("content") or ()
    ]
    return {**logprobs, "content": entries}


def _letters(value: Any) -> int:
    """How much text a delta carries, wherever in it."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_letters(item) for name, item in value.items() if name not in _UNSAID)
    return sum(map(_letters, value)) if isinstance(value, list) else 0


def merge(into: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Append streamed text to text, streamed objects to objects; anything else replaces."""
    for name, value in piece.items():
        old = into.get(name)
        if isinstance(old, str) and isinstance(value, str) and name not in {"id", "type", "role"}:
            into[name] = old + value
        elif isinstance(old, dict) and isinstance(value, Mapping):
            merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            into[name] = [*old, *value]
        elif isinstance(value, Mapping):
            into[name] = {}
            merge(into[name], value)
        elif value is not None:
            into[name] = value
