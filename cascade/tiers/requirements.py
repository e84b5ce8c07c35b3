"""What a request needs of a tier, known before any call.

A tier is left out only when it surely cannot serve the request: a request that is refused although
it would have been answered is lost, while one call too many costs a refusal by the model's server
and the next tier is asked. What a tier says nothing about never leaves it out.
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
        # "none" asks a model that could not to reason, which any other can do as well.
        "reasoning": (params.get("reasoning_effort") or "none") != "none",
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
