"""A JSON body on its way out, without keeping everybody else waiting while it goes."""

import io
from typing import Any, Final

import orjson

_ONE_WRITE_BYTES: Final = 1 << 20


def payload(body: Any) -> bytes | io.BytesIO:
    """The body as JSON: bytes go out in one write, a large one goes piece by piece."""
    data = orjson.dumps(body)
    return data if len(data) <= _ONE_WRITE_BYTES else io.BytesIO(data)
