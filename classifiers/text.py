"""What of a conversation is looked at to tell how hard it is: the last human ask."""

from collections.abc import Mapping, Sequence
from typing import Any

from cascade.types import Json


def last_ask(messages: Sequence[Json]) -> str:
    """Text of the last user message that has any; empty when there is none."""
    for message in reversed(messages):
        if message.get("role") == "user" and (text := text_of(message.get("content"))).strip():
            return text
    return ""


def text_of(content: Any) -> str:
    """The text of a message's content, which is a string, a list of parts, or null."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))
