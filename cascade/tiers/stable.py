"""What of a prompt other conversations begin with as well: its tools and its system prompt.

Whoever keeps a cache warm goes by it: where to mark it, who shares it, how long it is. Lengths are
estimates, made from bytes because a character of most scripts is more than one of them and takes a
larger share of a token.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cascade.types import ChatRequest, Json

BYTES_PER_TOKEN: Final = 4.0
"""Of English prose a little more, of code and of Korean a little less."""

_SYSTEM: Final = frozenset({"system", "developer"})
_MEDIA_BYTES: Final = 4000
"""An image is about a thousand tokens, however long its encoding is."""


def is_system(message: Json) -> bool:
    """Whether a message is part of the system prompt."""
    return message.get("role") in _SYSTEM


def leading(messages: Sequence[Json]) -> int:
    """How many messages at the beginning are the system prompt."""
    return next((i for i, each in enumerate(messages) if not is_system(each)), len(messages))


def stable_key(request: ChatRequest) -> str:
    """A name, of 32 hex digits, for a tenant's tools and system prompt; the same in each process.

    What counts is what is sent: a different order of tools or of their keys is a different prompt.
    """
    system = list(request.messages[: leading(request.messages)])
    drawn = repr([request.tenant, list(request.tools or ()), system])
    data = drawn.encode(errors="surrogatepass")
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def stable_tokens(request: ChatRequest, bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """About how long tools and system prompt are, in tokens."""
    system = request.messages[: leading(request.messages)]
    return int((size(list(request.tools or ())) + size(system)) / bytes_per_token)


def size(value: Any) -> int:
    """Bytes of a prompt's part, names of fields included and cache marks left out."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))
    if isinstance(value, Mapping):
        if _is_media(value):
            return _MEDIA_BYTES
        return sum(len(k) + size(v) for k, v in value.items() if k != "cache_control")
    return sum(map(size, value)) if isinstance(value, list | tuple) else 1


def _is_media(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind in {"image_url", "image", "input_audio", "file"}
