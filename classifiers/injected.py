"""Takes out of a user's message what a program put there: only the rest is the person's ask.

Agents and editors speak in the user's name. They add reminders, the state of the workspace and the
output of commands, in tags or as whole messages, often many times longer than what was typed.
"""

from collections.abc import Sequence
from typing import Final

MARKERS: Final = (
    "system-reminder",
    "environment_context",
    "environment_details",
    "environment_info",
    "workspace_info",
    "user_instructions",
    "user_info",
    "command-name",
    "command-message",
    "local-command-stdout",
    "local-command-stderr",
    "bash-stdout",
    "bash-stderr",
    "ide_opened_file",
    "ide_selection",
    "user-prompt-submit-hook",
    "reminderInstructions",
    "editorContext",
    "additional_data",
    "attached_files",
    "project_layout",
    "git_status",
)
"""Tags around what a program put in."""

WRAPPERS: Final = ("user_query", "userRequest", "user_message", "command-args")
"""Tags around what the person typed, where all else in the message is a program's."""

NOTICES: Final = (
    "[request interrupted",
    "caveat: the messages below",
    "[error] you did not use a tool",
    "this session is being continued from a previous conversation",
    "# agents.md instructions",
)
"""How a message begins that is a program's as a whole, in small letters."""

_NOTICE_CHARACTERS: Final = 200


def typed(
    text: str, markers: Sequence[str], wrappers: Sequence[str], notices: Sequence[str]
) -> str:
    """What of a user's text the person typed, in time that is linear in its length.

    A tag that is not closed is text: somebody may be writing about it.
    """
    if "</" in text:
        for tag in wrappers:
            if inside := "\n".join(_blocks(text, tag)[1]).strip():
                text = inside
                break
        for tag in markers:
            text = _blocks(text, tag)[0]
    text = text.strip()
    beginning = text[:_NOTICE_CHARACTERS].casefold()
    return "" if beginning.startswith(tuple(notices)) else text


def _blocks(text: str, tag: str) -> tuple[str, list[str]]:
    """The text without a tag's blocks, and what was in them."""
    opening, closing = f"<{tag}", f"</{tag}>"
    kept, found, at = [], [], 0
    start = text.find(opening)
    while start >= 0:
        inner = start + len(opening)
        if text[inner : inner + 1] in {">", " ", "\n"}:
            bound = text.find(">", inner)
            end = text.find(closing, inner)
            if end < 0 or bound < 0:
                break
            kept.append(text[at:start])
            found.append(text[bound + 1 : end])
            at = inner = end + len(closing)
        start = text.find(opening, inner)
    return ("".join([*kept, text[at:]]), found) if found else (text, found)
