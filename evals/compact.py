"""Log probabilities as they are kept: all that features come from, in a quarter of the room.

An entry is [token, logprob, [[token, logprob], ...]], with the token's bytes behind where they are
not the token's own UTF-8, as in half of a character.
"""

from collections.abc import Sequence
from typing import Any, Final

from cascade.types import Json

DIGITS: Final = 4
"""Decimals that log probabilities are kept with."""


def compact(logprobs: Sequence[Json] | None) -> list[list[Any]] | None:
    """OpenAI's logprob entries, as they are stored."""
    if logprobs is None:
        return None
    return [
        [
            entry["token"],
            round(entry["logprob"], DIGITS),
            [[other["token"], round(other["logprob"], DIGITS)] for other in entry["top_logprobs"]],
            *([] if _own_bytes(entry) else [entry["bytes"]]),
        ]
        for entry in logprobs
    ]


def expanded(stored: Sequence[Sequence[Any]] | None) -> list[Json] | None:
    """Stored log probabilities in OpenAI's shape, for the judges that read them."""
    if stored is None:
        return None
    return [
        {
            "token": token,
            "logprob": logprob,
            "bytes": raw[0] if raw else list(token.encode()),
            "top_logprobs": [
                {"token": other, "logprob": value, "bytes": list(other.encode())}
                for other, value in top
            ],
        }
        for token, logprob, top, *raw in stored
    ]


def _own_bytes(entry: Json) -> bool:
    return entry.get("bytes") is None or entry["bytes"] == list(entry["token"].encode())
