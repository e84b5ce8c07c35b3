"""What there is one of for each row: its prompt, id, group, part, and whatever texts it has."""

import hashlib
from collections.abc import Sequence
from typing import Any

from cascade.types import Json
from evals.tables.columns import Columns, TableError
from evals.tables.reading import Raw
from evals.tables.splits import NAMES, SplitRule
from evals.tables.values import column_of, conversations, texts


def text_of(messages: Sequence[Json]) -> str:
    """A prompt as one text: what all its messages say."""
    return "\n".join(part for message in messages for part in _said(message.get("content")))


def group_of(prompt: str) -> str:
    """The group of a prompt that states none: equal ones are alike."""
    return hashlib.blake2b(prompt.encode("utf-8", "replace"), digest_size=8).hexdigest()


def prompts(raw: Raw, mapping: Columns) -> list[str]:
    """Each row's prompt as a text; empty ones where the table has none.

    Raises:
        TableError: a row's prompt is neither a text nor a list of messages.
    """
    column = column_of(raw, mapping, "prompt")
    if column is None:
        return [""] * len(raw)
    return [text_of(messages) for messages in conversations(raw, column)]


def ids(raw: Raw, mapping: Columns) -> list[str]:
    """Each row's own; the rows' numbers where there are none.

    Raises:
        TableError: one is empty or there twice.
    """
    column = column_of(raw, mapping, "id")
    if column is None:
        return [str(at) for at in range(1, len(raw) + 1)]
    found = texts(raw, column)
    seen: dict[str, int] = {}
    for at, name in enumerate(found):
        if not name:
            raise TableError(f"{raw.place(at)}: {column}: is empty")
        first = seen.setdefault(name, at)
        if first != at:
            raise TableError(
                f"{raw.place(at)}: {column}: {name!r} is already that of {raw.place(first)}"
            )
    return found


def groups(raw: Raw, mapping: Columns, prompts: Sequence[str], ids: Sequence[str]) -> list[str]:
    """As stated; else rows with one prompt are alike, and without a prompt none are."""
    stated = optional(raw, mapping, "group")
    return [
        group or (group_of(prompt) if prompt else name)
        for group, prompt, name in zip(stated, prompts, ids, strict=True)
    ]


def splits(raw: Raw, mapping: Columns, groups: Sequence[str], rule: SplitRule) -> list[str]:
    """The part of each row: as it states, else as its group's rows state or the rule draws.

    Raises:
        TableError: a row states a part of another name.
    """
    stated = [said.lower() for said in optional(raw, mapping, "split")]
    if unknown := set(stated) - NAMES.keys() - {""}:
        at = next(at for at, said in enumerate(stated) if said in unknown)
        raise TableError(
            f"{raw.place(at)}: {mapping.of('split')}: must be one of {', '.join(NAMES)}, not "
            f"{stated[at]!r}"
        )
    drawn = {group: rule.of(group) for group in set(groups)} if "" in stated else {}
    # Rows that say nothing are where those are that they are like.
    drawn |= {group: NAMES[said] for said, group in zip(stated, groups, strict=True) if said}
    pairs = zip(stated, groups, strict=True)
    return [NAMES[said] if said else drawn[group] for said, group in pairs]


def optional(raw: Raw, mapping: Columns, name: str) -> list[str]:
    """The texts of a column that a table may be without; empty ones then.

    Raises:
        TableError: the column was named and is not there, or a row's value is no text.
    """
    column = column_of(raw, mapping, name)
    if column is None:
        return [""] * len(raw)
    return texts(raw, column)


def _said(content: Any) -> list[str]:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return [text for text in parts if isinstance(text, str)]
    return [content] if isinstance(content, str) else []
