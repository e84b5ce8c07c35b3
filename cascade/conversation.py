"""What was said in a conversation, as text: what judges and estimators read of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade.types import Json


def last_ask(messages: Sequence[Json]) -> str:
    """Text of the last user message that has any; empty when there is none."""
    for message in reversed(messages):
        if message.get("role") == "user" and (text := text_of(message.get("content"))).strip():
            return text
    return ""


def text_of(content: Any) -> str:
    """The text of a message's content, which is a string, a list of parts, or null.

    Images, and what tools returned in a user's name, have no text of their own.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def turns(messages: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """(role, text) of each message that has text."""
    for message in messages:
        if text := text_of(message.get("content")).strip():
            yield str(message.get("role") or "user"), text


def cut(text: str, characters: int) -> str:
    """The text, its middle left out where it is longer than that; says how much is missing."""
    if len(text) <= characters:
        return text
    head = characters * 2 // 3
    missing = len(text) - characters
    return f"{text[:head]}\n[... {missing} characters left out ...]\n{text[head - characters :]}"
