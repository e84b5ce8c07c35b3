"""Carries signed reasoning through a client that gives it back: the encrypted_content of an item.

Some providers sign what their models think and want it back untouched with the next turn. Nothing
is stored here, so it travels in the one field that clients of this API keep and do not look into.
"""

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import orjson

from cascade.types import Json

_PREFIX = "cascade1."
"""Tells ours from what a provider encrypted, which only that provider can read."""


def seal(thoughts: Iterable[Json]) -> str | None:
    """Thinking blocks as opaque text; None when none of them is signed or redacted."""
    signed = [t for t in thoughts if t.get("signature") or t["type"] == "redacted_thinking"]
    if not signed:
        return None
    return _PREFIX + base64.urlsafe_b64encode(orjson.dumps(signed)).decode()


def unseal(text: str | None) -> list[dict[str, Any]]:
    """The thinking blocks of an opaque text; none when it is not ours or was changed."""
    if text is None or not text.startswith(_PREFIX):
        return []
    try:
        blocks = orjson.loads(base64.urlsafe_b64decode(text.removeprefix(_PREFIX)))
    except (binascii.Error, ValueError):
        return []
    return blocks if isinstance(blocks, list) and all(map(_is_block, blocks)) else []


def _is_block(block: Any) -> bool:
    return isinstance(block, dict) and all(isinstance(value, str) for value in block.values())
