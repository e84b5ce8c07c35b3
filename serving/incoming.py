"""What of a request is read before any API looks at it: its headers and its body's bytes.

A body that claims more than it brings must not keep a connection for ever, and one that no JSON
reader could take is told so in the words of HTTP.
"""

import asyncio
import hashlib
from collections.abc import Mapping

from fastapi import Request
from starlette.requests import ClientDisconnect

from cascade.errors import MediaTypeError, RequestError, RequestTimeoutError, RequestTooLargeError
from serving.control import HEADERS, PREFIX

SILENCE_SECONDS = 30.0
"""How long a client may send nothing while its body is not whole."""

_OURS = PREFIX.encode()
_KNOWN = (*HEADERS.values(), f"{PREFIX}tenant")
_READ = frozenset(
    {
        *(b"content-encoding", b"content-type", b"idempotency-key"),
        *map(str.encode, _KNOWN),
    }
)

_STATE = "tracestate"
_OF_A_TRACE = frozenset({b"traceparent", _STATE.encode()})

_KEYS = frozenset({b"authorization", b"x-api-key"})

# What an answer carries: of a Cascade in front of this one, a proxy may pass it on.
_ANSWERS = frozenset(
    _OURS + name
    for name in (
        *(b"tier", b"model", b"policy", b"experiment", b"arm", b"attempts", b"degraded"),
        *(b"cost-usd", b"cost-estimated", b"baseline-usd", b"overhead-ms"),
        *(b"request-id", b"idempotent-replay"),
    )
)

# Unspecified bytes may be JSON. Forms and plain text are refused although they may be as well: a
# web page of somebody else's can make a browser send those without asking first.
_TAKEN = frozenset({"", "application/json", "application/octet-stream"})


def header_texts(http: Request) -> dict[str, str]:
    """The headers that Cascade reads, by lower-case names; of several with one name the first.

    Those of a trace are W3C's: a state may come in several headers, and what cannot be read of them
    is no fault of the request.

    Raises:
        RequestError: one of them is not UTF-8, or is for Cascade and not known.
    """
    texts: dict[str, str] = {}
    for raw, value in http.scope["headers"]:
        if raw in _READ:
            name = raw.decode("latin-1")
            texts.setdefault(name, _text(name, value))
        elif raw in _OF_A_TRACE:
            name, told = raw.decode("latin-1"), value.decode("latin-1")
            before = texts.get(name)
            if before is None:
                texts[name] = told
            elif name == _STATE:
                texts[name] = f"{before},{told}"
        elif raw.startswith(_OURS) and raw not in _ANSWERS:
            name = raw.decode("latin-1")
            raise RequestError(
                f"{name}: is not known; what is known: {', '.join(_KNOWN)}", param=name
            )
    return texts


def key_id(http: Request) -> str:
    """A short hash of the key that the client sent, to tell clients apart; empty without a key.

    The key itself goes nowhere: Cascade's own calls upstream have the tiers' keys.
    """
    for name, value in http.scope["headers"]:
        if name in _KEYS:
            scheme, _, rest = value.strip().partition(b" ")
            key = rest.strip() if scheme.lower() == b"bearer" else value.strip()
            return hashlib.blake2b(key, digest_size=6).hexdigest() if key else ""
    return ""


async def body_of(
    http: Request,
    headers: Mapping[str, str],
    limit: int,
    silence_seconds: float = SILENCE_SECONDS,
) -> bytes:
    """The body's bytes.

    Raises:
        MediaTypeError: it is said to be something else than JSON, or to be compressed.
        RequestTooLargeError: it has more bytes than the limit.
        RequestTimeoutError: it stopped coming in.
        ClientDisconnect: the client left.
    """
    _check_media(headers)
    clock = asyncio.get_running_loop().time
    pieces, size = [], 0
    try:
        async with asyncio.timeout(silence_seconds) as patience:
            more = True
            while more:
                message = await http.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                if more := message.get("more_body", False):
                    patience.reschedule(clock() + silence_seconds)
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > limit:
                    raise RequestTooLargeError(f"the body is larger than {limit} bytes")
    except TimeoutError:
        raise RequestTimeoutError(
            f"the body stopped after {size} bytes and nothing came for {silence_seconds:g} s; "
            "content-length may claim more than was sent",
            param="content-length",
        ) from None
    return b"".join(pieces)


def _check_media(headers: Mapping[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TAKEN and not kind.endswith("+json"):
        raise MediaTypeError(
            f"content-type: {kind!r} is not taken; send application/json", param="content-type"
        )
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise MediaTypeError(
            f"content-encoding: {coding!r} is not taken; send the body as it is",
            param="content-encoding",
        )


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RequestError(f"{name}: is not UTF-8", param=name) from None
