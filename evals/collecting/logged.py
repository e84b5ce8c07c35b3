"""Prompts that the audit log keeps: what people really ask, for a set that is like the traffic.

Their right answers are not known, so they are for a scorer that needs none.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from evals.collecting.prompt_sets import Reading, prompts_of
from evals.datasets import DatasetError, Prompt
from evals.tables.reading import turned
from serving.store.database import engine_for, faults_of
from serving.store.keys import audit_keys
from serving.store.prompts import place
from serving.store.tables import requests

LOGGED: Final = "audit"
"""The set's name on the command line."""

REDACTED, FULL = "redacted", "full"


def logged_prompts(
    url: str,
    reading: Reading,
    opened: Callable[[str, str], str] | None = None,
    left_out: Callable[[int, int], None] = lambda *_: None,
) -> list[Prompt]:
    """The prompts whose texts are kept, each under its request's id; a session's are one group.

    Args:
        url: of the audit database.
        reading: the scorer and the limit of their answers.
        opened: reads what was kept encrypted, given the request's id and the text; None: such
            prompts are left out.
        left_out: told how many of how many are, if any: those, and what a set has no place for.

    Raises:
        AuditError: the database cannot be read.
        DatasetError: it keeps no prompt's text.
    """
    wanted = select(
        requests.c.id, requests.c.session, requests.c.prompt_form, requests.c.prompt_text
    ).where(requests.c.prompt_text.is_not(None))
    with faults_of(url), engine_for(url).connect() as connection:
        found = connection.execute(wanted.order_by(requests.c.id)).mappings().all()
    readers = {REDACTED: lambda _, text: text, FULL: opened}
    rows = []
    for row in found:
        read = readers.get(row["prompt_form"])
        messages = [] if read is None else _messages(read(row["id"], row["prompt_text"]))
        if messages:
            rows.append({"id": row["id"], "messages": messages, "group": row["session"]})
    if not rows:
        raise DatasetError(
            "the audit log keeps no prompt that can be asked again: set audit.prompts to redacted "
            "or full, and wait for traffic"
        )
    if len(rows) < len(found):
        left_out(len(found) - len(rows), len(found))
    return prompts_of(turned(Path(LOGGED), enumerate(rows, 1)), reading)


def with_keys() -> Callable[[str, str], str] | None:
    """What reads encrypted prompts with the keys in the environment; None where there are none.

    Raises:
        ConfigError: what is there is no key.
    """
    keys = audit_keys()
    if keys is None:
        return None

    def opened(request: str, text: str) -> str:
        from serving.store.encryption import decrypt  # noqa: PLC0415 - its library, if it is used

        return decrypt(keys, text, place(request, "prompt"))

    return opened


def _messages(text: str) -> list[Mapping[str, Any]]:
    """The messages of a kept prompt; none for one with tools, which a set has no place for."""
    kept = json.loads(text)
    if isinstance(kept, dict):
        kept = [] if kept.get("tools") else kept.get("messages") or []
    return kept if all("content" in message for message in kept) else []
