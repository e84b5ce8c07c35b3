"""A prompt as bytes, where nobody says how the model's server writes it down.

What servers make of a request differs, but what makes two prompts different for them hardly does.
So the same prompt, however its JSON was written, has the same bytes here, and what goes on from it
begins with them:

- tools in the order and with the key order in which they came: servers write them down like that,
  so another order is another prompt. White space between the JSON's tokens is not kept.
- messages in order. Content that is null, missing or empty is the same, and so is a text alone and
  as the only part of a list.
- tool calls with their arguments word for word; their other fields in any order.
- an image, or another medium, as a hash of its bytes. It is as long as 4,000 bytes of text, about a
  thousand tokens, however large it is. One at an address is the hash of the address.
- without cache_control: it says what to cache, and is no part of what is cached.
- with response_format, where that has a schema, behind the tools: providers put it before the
  system prompt. Other parameters leave no trace.

The marks between fields are bytes that no UTF-8 text has, so no text can pass for another's field.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

from cascade.types import ChatRequest, Completion, Json

MEDIUM_BYTES: Final = 4000
"""What an image counts for, as text."""

TOOL: Final = b"\xfd"
MESSAGE: Final = b"\xff"
_FIELD: Final = b"\xfe"
_PART: Final = b"\xfc"
# Nobody shall take another image for another identifier, so its hash has no digits.
_LETTERS: Final = bytes.maketrans(b"0123456789abcdef", b"ghijklmnopqrstuv")
_MARK: Final = "cache_control"
_PIECE: Final = 1 << 18
"""Of base64, in whole groups of four; to decode it takes less than half a millisecond."""

_MEDIA: Final = frozenset(
    {
        *("audio_url", "document", "file", "image", "image_url", "input_audio", "input_file"),
        *("input_image", "video_url"),
    }
)
_APART: Final = frozenset({"role", "content", "tool_calls", _MARK})


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt's bytes, tool by tool and message by message, and all together in that order."""

    tools: Sequence[bytes]
    messages: Sequence[bytes]
    text: bytes

    @classmethod
    def of(cls, request: ChatRequest) -> Self:
        """Those of a request."""
        tools = list(map(tool_rendering, tools_of(request)))
        messages = list(map(message_rendering, request.messages))
        return cls(tools=tools, messages=messages, text=b"".join([*tools, *messages]))


def rendering(request: ChatRequest) -> bytes:
    """The prompt's bytes: tools, then messages."""
    return Rendered.of(request).text


def has_media(request: ChatRequest) -> bool:
    """Whether there are media in the messages: what they take does not depend on their bytes."""
    return any(_has_media(message.get("content")) for message in request.messages)


def answer_rendering(completion: Completion) -> bytes:
    """What an answer adds to its prompt's bytes, once it is sent back as part of the history."""
    answer = {"role": "assistant", "content": completion.text, "tool_calls": completion.tool_calls}
    return message_rendering(answer)


def tools_of(request: ChatRequest) -> list[Any]:
    """The tools, the functions of older clients, and the answer's schema."""
    given: list[Any] = [*(request.tools or ()), *_list(request.params.get("functions"))]
    form = request.params.get("response_format")
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        given.append(form)
    return given


def tool_rendering(tool: Any, *, ordered: bool = True) -> bytes:
    """One tool's bytes.

    Args:
        tool: one of `tools_of`.
        ordered: False sorts the keys, so that only what they say counts.
    """
    return TOOL + _json(_unmarked_tool(tool), ordered=ordered)


def tool_renderings(request: ChatRequest, *, ordered: bool = True) -> list[bytes]:
    """The bytes of each of a request's tools."""
    return [tool_rendering(each, ordered=ordered) for each in tools_of(request)]


def message_rendering(message: Json) -> bytes:
    """One message's bytes; fields that say nothing are left out, the others are sorted by name."""
    pieces = [MESSAGE, _bytes(str(message.get("role"))), _FIELD, content(message.get("content"))]
    for call in _list(message.get("tool_calls")):
        pieces += (_FIELD, _call(call))
    for name in sorted(message.keys() - _APART):
        if message[name] not in (None, "", [], {}):
            pieces += (_FIELD, _json({name: message[name]}, ordered=False))
    return b"".join(pieces)


def content(value: Any) -> bytes:
    """A content's bytes: those of a text, or of the parts of a list."""
    if value is None:
        return b""
    if isinstance(value, str):
        return _bytes(value)
    if not isinstance(value, list | tuple):
        return _json(value, ordered=False)
    return _PART.join(map(_part, value))


def _part(part: Any) -> bytes:
    if not isinstance(part, Mapping):
        return content(part) if isinstance(part, str) else _json(part, ordered=False)
    kind, text = part.get("type"), part.get("text")
    if isinstance(text, str) and kind == "text" and part.keys() <= {"type", "text", _MARK}:
        return _bytes(text)
    unmarked = {name: value for name, value in part.items() if name != _MARK}
    if isinstance(kind, str) and kind in _MEDIA:
        return medium(unmarked)
    if isinstance(unmarked.get("content"), list | tuple):  # what a tool returned, in parts
        inside = content(unmarked.pop("content"))
        return _json(unmarked, ordered=False) + _PART + inside
    return _json(unmarked, ordered=False)


def _has_media(value: Any) -> bool:
    if isinstance(value, Mapping):
        kind = value.get("type")
        return (isinstance(kind, str) and kind in _MEDIA) or _has_media(value.get("content"))
    return isinstance(value, list | tuple) and any(map(_has_media, value))


def medium(part: Json) -> bytes:
    """What stands for an image, a sound or a file: a hash of it, and of how it is to be seen."""
    told = _json(_hashed(part), ordered=False)
    digest = blake2b(told, digest_size=16).hexdigest().encode().translate(_LETTERS)
    return digest * (MEDIUM_BYTES // len(digest))


def _hashed(value: Any) -> Any:
    """The value with a hash instead of the data in it, which the way it is encoded leaves alone."""
    if isinstance(value, Mapping):
        return {
            name: _digest(item) if name == "data" and isinstance(item, str) else _hashed(item)
            for name, item in value.items()
            if name != "media_type"
        }
    if isinstance(value, str) and value.startswith("data:"):
        return _digest(value, value.find(",") + 1 or len(value))
    return value


def _digest(text: str, begin: int = 0) -> str:
    """Of the data that begins there in a text."""
    try:
        return _decoded_digest(text, begin)
    except ValueError:
        data = text[begin:]
    try:  # base64 may be broken into lines
        return _decoded_digest("".join(data.split()), 0)
    except ValueError:
        return blake2b(_bytes(data), digest_size=16).hexdigest()


def _decoded_digest(data: str, begin: int) -> str:
    """Of the bytes that base64 stands for, piece by piece, so that other threads get their turn."""
    found = blake2b(digest_size=16)
    for start in range(begin, len(data), _PIECE):
        found.update(base64.b64decode(data[start : start + _PIECE], validate=True))
    return found.hexdigest()


def _call(call: Any) -> bytes:
    if not isinstance(call, Mapping):
        return _json(call, ordered=False)
    function = call.get("function")
    if not isinstance(function, Mapping):
        return _json({name: call[name] for name in call if name != "index"}, ordered=False)
    arguments = function.get("arguments")
    said = _bytes(arguments) if isinstance(arguments, str) else _json(arguments)
    return _FIELD.join((_bytes(str(call.get("id"))), _bytes(str(function.get("name"))), said))


def _unmarked_tool(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    function = tool.get("function")
    inner = {"function": _unmarked_tool(function)} if isinstance(function, Mapping) else {}
    return {name: inner.get(name, value) for name, value in tool.items() if name != _MARK}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _json(value: Any, *, ordered: bool = True) -> bytes:
    return _bytes(
        json.dumps(
            value,
            ensure_ascii=False,
            separators=(",", ":"),
            sort_keys=not ordered,
            default=_plain,
        )
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Iterator | Sequence) else str(value)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
