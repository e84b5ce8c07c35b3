"""What a request needs of a tier, known before any call.

A tier is left out only when it surely cannot serve the request: a request that is refused although
it would have been answered is lost, while one call too many costs a refusal by the model's server
and the next tier is asked. What a tier says nothing about never leaves it out.

How long a prompt is, only the model's own tokenizer knows. Two estimates say when it need not be
asked: one that a prompt surely exceeds, one that it surely does not.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from cascade.types import ChatRequest, Json

_PIECE: Final = re.compile(
    "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{1,3}"  # Chinese, Japanese, Korean
    "|[^\\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{1,16}"
)
"""Text that takes at least one token, whoever counts.

Tokenizers do not merge words across white space, hardly any has tokens of over 16 characters, and
none gets to three Chinese characters or Korean syllables a token on average. Of what the tokenizers
cl100k and o200k count, this finds half to all in English prose and in code, and a quarter to four
fifths in other languages. Only text made of ruled lines (=====) is counted longer than it is.
"""
_IMAGES: Final = frozenset({"image_url", "input_image", "image"})
_MEDIA: Final = _IMAGES | {"audio_url", "file", "input_audio", "input_file", "video_url"}
_AROUND: Final = 8
"""Bytes allowed for what a chat template puts around one field: marks, quotes, indentation."""
_TEMPLATE: Final = 512
"""Tokens allowed for what a chat template says on its own: a system prompt, the use of tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a request asks of whoever serves it.

    Attributes:
        capabilities: what it takes beyond plain text, in the words of a tier's capabilities.
        texts: the prompt, piece by piece, without images and tool definitions.
        answer_tokens: the longest answer that the client allows; None when it did not say.
    """

    capabilities: tuple[str, ...] = ()
    texts: Sequence[str] = ()
    answer_tokens: int | None = None

    def prompt_exceeds(self, tokens: int) -> bool:
        """Whether the prompt surely has more tokens, by an estimate that errs on the low side."""
        if sum(map(len, self.texts)) <= tokens:
            return False
        if tokens < 0:
            return True
        pieces = (piece for text in self.texts for piece in _PIECE.finditer(text))
        return sum(1 for _ in islice(pieces, tokens + 1)) > tokens


def needs(request: ChatRequest) -> Needs:
    """What the request asks for. What it does not ask for itself, a judge may, is not in it."""
    params = request.params
    form = params.get("response_format")
    asked = {
        "logprobs": bool(params.get("logprobs")),
        "json_schema": isinstance(form, Mapping) and form.get("type") == "json_schema",
        "tools": bool(request.tools or params.get("functions")),
        "vision": any(_shows(message.get("content")) for message in request.messages),
        "reasoning": _asks_to_reason(params),
    }
    return Needs(
        capabilities=tuple(name for name, is_asked in asked.items() if is_asked),
        texts=tuple(texts(request.messages)),
        answer_tokens=answer_limit(request),
    )


def answer_limit(request: ChatRequest) -> int | None:
    """The longest answer that the client allows, in tokens; None when it did not say."""
    return request.params.get("max_completion_tokens") or request.params.get("max_tokens")


def texts(value: Any) -> Iterator[str]:
    """The text of messages or contents, piece by piece."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts(value.get("content"))
        yield from texts(value.get("text"))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def at_most(request: ChatRequest) -> int:
    """Tokens that the prompt surely does not exceed, media left out.

    No tokenizer takes more than a token a byte.
    """
    tools = 0 if request.tools is None else _bytes(request.tools)
    return _bytes(request.messages) + tools + _TEMPLATE


def text_only(messages: Sequence[Json]) -> list[Json]:
    """The messages without images and other media."""
    return [{**message, "content": _text_of(message.get("content"))} for message in messages]


def _bytes(value: Any) -> int:
    # dict first: a check for the abstract Mapping takes longer than all the rest.
    if isinstance(value, str):
        text = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        return text + _AROUND
    if isinstance(value, dict | Mapping):
        if _is_media(value):
            return 0
        return _AROUND + sum(map(len, value)) + sum(map(_bytes, value.values()))
    if isinstance(value, list | tuple):
        return _AROUND + sum(map(_bytes, value))
    return _AROUND


def _text_of(content: Any) -> Any:
    if not isinstance(content, list | tuple):
        return content
    return [part for part in content if not (isinstance(part, Mapping) and _is_media(part))]


def _is_media(part: Json) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in _MEDIA


def _asks_to_reason(params: Json) -> bool:
    """Whether a reasoning model is asked for, in the words of OpenAI, Anthropic or OpenRouter.

    "none" and "disabled" ask a model that could not to reason, which any other can do as well.
    """
    thinking, reasoning = _object(params, "thinking"), _object(params, "reasoning")
    efforts = (
        params.get("reasoning_effort"),
        reasoning.get("effort"),
        _object(params, "output_config").get("effort"),
    )
    return (
        any((effort or "none") != "none" for effort in efforts)
        or thinking.get("type", "disabled") != "disabled"
        or bool(reasoning.get("enabled") or reasoning.get("max_tokens"))
    )


def _object(params: Json, name: str) -> Json:
    value = params.get(name)
    return value if isinstance(value, Mapping) else {}


def _shows(content: Any) -> bool:
    """Whether a message's content, or that of a tool result in it, has an image."""
    if not isinstance(content, list | tuple):
        return False
    return any(isinstance(part, Mapping) and _is_image(part) for part in content)


def _is_image(part: Json) -> bool:
    kind = part.get("type")
    if isinstance(kind, str) and kind in _IMAGES:
        return True
    file = part.get("file")
    data = (file if isinstance(file, Mapping) else part).get("file_data")
    return (isinstance(data, str) and data.startswith("data:image/")) or _shows(part.get("content"))
