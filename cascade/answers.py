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
            _merge(self.calls.setdefault(call.get("index", 0), {}), call)
        for name in delta.keys() - _KNOWN:
            _merge(self.extra, {name: delta[name]})
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
    return any((piece.get("logprobs") or {}).get("content") for piece in choices) or any(
        value
        for piece in choices
        for name, value in (piece.get("delta") or {}).items()
        if name != "role"
    )


def characters(choices: Sequence[Json]) -> int:
    """How much text a chunk carries."""
    return sum(len((piece.get("delta") or {}).get("content") or "") for piece in choices)


def presented(request: ChatRequest, choices: Sequence[Json]) -> Sequence[Json]:
    """Chunk choices as the client asked for them: log probabilities only if it wanted them."""
    if request.params.get("logprobs"):
        return [
            {**piece, "logprobs": presented_logprobs(request, piece["logprobs"])}
            if piece.get("logprobs")
            else piece
            for piece in choices
        ]
    if any("logprobs" in piece for piece in choices):
        return [{k: v for k, v in piece.items() if k != "logprobs"} for piece in choices]
    return choices


def presented_logprobs(request: ChatRequest, logprobs: Json) -> Json:
    """Log probabilities cut to as many alternatives as the client asked for."""
    top = request.params.get("top_logprobs") or 0
    entries = [
        {**entry, "top_logprobs": (entry.get("top_logprobs") or [])[:top]}
        for entry in logprobs.get("content") or ()
    ]
    return {**logprobs, "content": entries}


def _merge(into: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Append streamed text to text, streamed objects to objects; anything else replaces."""
    for name, value in piece.items():
        old = into.get(name)
        if isinstance(old, str) and isinstance(value, str) and name not in {"id", "type", "role"}:
            into[name] = old + value
        elif isinstance(old, dict) and isinstance(value, Mapping):
            _merge(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            into[name] = [*old, *value]
        elif isinstance(value, Mapping):
            into[name] = {}
            _merge(into[name], value)
        elif value is not None:
            into[name] = value
