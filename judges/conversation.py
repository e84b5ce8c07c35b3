"""What judges read of a conversation, as text."""

import json
from collections.abc import Iterator, Sequence

from cascade.tiers.requirements import texts
from cascade.types import Completion, Json


def last_ask(messages: Sequence[Json]) -> str:
    """Text of the last user message that has any; empty when there is none."""
    for message in reversed(messages):
        if message.get("role") == "user" and (text := text_of(message)).strip():
            return text
    return ""


def text_of(message: Json) -> str:
    """A message's text, without images and tool calls."""
    return "\n".join(texts(message.get("content")))


def turns(messages: Sequence[Json]) -> Iterator[tuple[str, str]]:
    """(role, text) of each message that has text."""
    for message in messages:
        if text := text_of(message).strip():
            yield str(message.get("role") or "user"), text


def answer_text(completion: Completion) -> str:
    """All that an answer says: its text, and its tool calls as JSON."""
    calls = [json.dumps(call.get("function") or call) for call in completion.tool_calls]
    return "\n".join(filter(None, [completion.text, *calls]))


def cut(text: str, characters: int) -> str:
    """The text, its middle left out where it is longer than that; says how much is missing."""
    if len(text) <= characters:
        return text
    head = characters * 2 // 3
    missing = len(text) - characters
    return f"{text[:head]}\n[... {missing} characters left out ...]\n{text[head - characters :]}"
