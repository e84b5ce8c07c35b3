"""Translates what was said, part by part, from the Responses API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.tools import rest
from serving.responses.body import File, Image, Refusal, Text, Typed
from serving.schemas import validated


def said(content: Any, at: str) -> list[dict[str, Any]]:
    """The parts of what an assistant said.

    Raises:
        RequestError: a part cannot be translated; names its path.
    """
    return _parts(content, at, _SAID)


def shown(content: Any, at: str) -> Any:
    """The content of what was said or shown to a model.

    Raises:
        RequestError: a part cannot be translated; names its path.
    """
    return plain(_parts(content, at, _SHOWN))


def plain(parts: Sequence[Json]) -> Any:
    """A single text is a string, which every server takes, also those that take no parts."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return list(parts)


def unknown(kind: str, field: str, known: Sequence[str]) -> RequestError:
    """The refusal of something that has no counterpart."""
    return RequestError(
        f"{field}: {kind!r} is not taken here; what is taken: {', '.join(known)}", param=field
    )


_Part = Callable[[Json, str], dict[str, Any]]


def _parts(content: Any, at: str, kinds: Mapping[str, _Part]) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not content:
        raise RequestError(f"{at}: is empty", param=at)
    parts = []
    for index, part in enumerate(content):
        where = f"{at}[{index}]"
        kind = validated(Typed, part, where).type
        if kind not in kinds:
            raise unknown(kind, f"{where}.type", list(kinds))
        parts.append(kinds[kind](part, where))
    return parts


def _text(part: Json, at: str) -> dict[str, Any]:
    validated(Text, part, at)
    return {"type": "text", **rest(part, "annotations", "logprobs", "parsed")}


def _refusal(part: Json, at: str) -> dict[str, Any]:
    """As text: it is what the model said, and most servers know no other field for it."""
    return {"type": "text", "text": validated(Refusal, part, at).refusal}


def _image(part: Json, at: str) -> dict[str, Any]:
    image = validated(Image, part, at)
    if image.image_url is None:
        raise _not_here(part, at, "image_url", "send the image as a data URL in image_url")
    shown = {"url": image.image_url} | ({"detail": image.detail} if image.detail else {})
    return {
        "type": "image_url",
        "image_url": shown,
        **rest(part, "image_url", "detail", "file_id"),
    }


def _file(part: Json, at: str) -> dict[str, Any]:
    file = validated(File, part, at)
    if file.file_data is None:
        raise _not_here(part, at, "file_data", "send the content as a data URL in file_data")
    known = ("file_data", "filename")
    content = {name: part[name] for name in known if part.get(name) is not None}
    return {"type": "file", "file": content, **rest(part, *known, "file_id", "file_url")}


def _not_here(part: Json, at: str, wanted: str, instead: str) -> RequestError:
    """Refuses what lies elsewhere, by the field that says where."""
    for name in ("file_id", "file_url"):
        if part.get(name) is not None:
            field = f"{at}.{name}"
            return RequestError(
                f"{field}: files are neither stored nor fetched here: {instead}", param=field
            )
    return RequestError(f"{at}.{wanted}: is missing", param=f"{at}.{wanted}")


_SAID: Mapping[str, _Part] = {"output_text": _text, "refusal": _refusal}
_SHOWN: Mapping[str, _Part] = {"input_text": _text, "input_image": _image, "input_file": _file}
