"""What of a conversation is classified: the last human ask, and what it refers to.

By the last message alone, "commit it" after an hour of hard work looks easy; by everything, a long
system prompt or a tool's result decides. So the last ask of a person is taken, and beside it a
bounded window of what was said before. The window depends on the ask: one that only makes sense
with what it refers to ("yes", "the same for the other file") takes a large one, one that stands on
its own a small one, so that it keeps most of the text's meaning.

The words are lists, not models: they cost microseconds, and a wrong guess only makes the window
larger or smaller.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

from cascade.conversation import text_of
from cascade.errors import ConfigError
from cascade.types import Json
from classifiers.budget import cut, tokens
from classifiers.injected import MARKERS, NOTICES, WRAPPERS, typed

_LOOKED_AT: Final = 4_000
"""Messages that are gone through, from the last one back."""

_SYSTEM: Final = frozenset({"system", "developer"})
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_FENCE: Final = "```"
_FENCES: Final = 64
_LEAST_WINDOW: Final = 8
"""Tokens of earlier turns that say anything."""

_SHORT: Final = 24
"""Tokens, above which an ask is taken to stand on its own."""

_ONE_WORD: Final = 5
"""Tokens of the longest ask that means nothing by itself, if it is at most two words."""

_GOES_ON: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|no|nope|ok|okay|sure|right|correct|exactly|perfect|good|great|thanks"
    r"|go ahead|go on|do (?:it|so|that)|proceed|continue|carry on|keep going|please do|next|again"
    r"|now|also|and|but|then|same|another|instead|more|undo|revert|retry|try again|what about"
    r"|how about|which (?:one|of)|why(?: not)?\W*$|commit|push|merge|ship it|run it"
    r"|fix (?:it|that|this)"
    r"|sí|si|oui|ja|continua|continue[zr]"
    r"|はい|続けて|好|是的|继续"
    r"|네|예|응|ㅇㅇ|좋아|그래|맞아|아니"
    r"|계속|다시|그럼|그리고|이제|또"
    r"|고마워|부탁|진행|커밋)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""How an ask begins that goes on from what was said: English, a few others, Korean."""

_EARLY: Final = re.compile(r"\W*(?:\w+\W+){0,3}(?:it|this|them|these|those)\b", re.IGNORECASE)
"""A pronoun so early in an ask that what it stands for was said before."""

_BACK: Final = re.compile(
    r"\b(?:the same|same (?:for|with|thing)|as before|above|previous|earlier|once more"
    r"|the others?\b|the rest|remaining|(?:first|second|third|last|next) (?:one|step|part|option)"
    r"|that(?: one)?(?=\W*$|[,;]))\b"
    r"|그거|그것|그건|그걸|이거|이것|이건"
    r"|이걸|저거|위의|위에|방금|아까"
    r"|같은|똑같이|그대로|나머지|마저"
    r"|다른 (?:파일|것|거)|도 (?:추가|고쳐|바꿔|부탁|해)",
    re.IGNORECASE,
)
"""Words anywhere in a short ask that point back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """How much is taken of what, in approximate tokens, and what is no part of an ask.

    Attributes:
        ask_tokens: of the ask.
        context_tokens: of the turns before it, for an ask that refers to them. One that stands on
            its own gets at most half as many as it has itself.
        system_tokens: of the system prompt.
        code_tokens: of each fenced block of code.
        turns: human turns before the ask that are looked at.
        markers: tags around what programs put into a user's message.
        wrappers: tags around what the person typed, where the rest is a program's.
        notices: how messages of programs begin, in small letters.
    """

    ask_tokens: int = 144
    context_tokens: int = 144
    system_tokens: int = 24
    code_tokens: int = 64
    turns: int = 8
    markers: Sequence[str] = MARKERS
    wrappers: Sequence[str] = WRAPPERS
    notices: Sequence[str] = NOTICES

    @classmethod
    def of(
        cls,
        given: Mapping[str, Any] | None,
        option: str,
        default: "Extraction | None" = None,
    ) -> "Extraction":
        """One from its fields as a configuration gives them.

        Args:
            given: the fields that differ from the default's.
            option: what the configuration calls it.
            default: what the other fields are.

        Raises:
            ConfigError: a field is not known or holds what it cannot; names it below `option`.
        """
        known = {field.name for field in fields(cls)}
        for name, value in (given or {}).items():
            where = f"{option}.{name}"
            if name not in known:
                raise ConfigError(f"unknown key: it takes {', '.join(sorted(known))}", param=where)
            if name in {"markers", "wrappers", "notices"}:
                if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                    raise ConfigError("it is a list of texts", param=where)
            elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError("it is a whole number, 0 or more", param=where)
        return replace(default or DEFAULT, **(given or {}))

    def settings(self) -> dict[str, Any]:
        """Its fields as a configuration or an artifact gives them."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {n: list(v) if isinstance(v, Sequence) else v for n, v in found.items()}


DEFAULT: Final = Extraction()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is classified of a conversation.

    Attributes:
        text: the ask, cut to its budget; empty when nobody asked anything in words.
        context: of the turns before it, the ask that it goes back to and the last answer.
        system: the beginning and the end of the system prompt.
        refers: the ask only makes sense with what it goes back to.
        tokens: about how long the whole ask is, and with it the one that it goes back to.
        images: in the ask's message.
    """

    text: str = ""
    context: str = ""
    system: str = ""
    refers: bool = False
    tokens: float = 0.0
    images: int = 0

    @property
    def said(self) -> str:
        """The ask and its context, without the system prompt."""
        return "\n\n".join(filter(None, [self.text, self.context]))

    @property
    def whole(self) -> str:
        """All of it as one text, what matters most in front: what is embedded."""
        return "\n\n".join(filter(None, [self.text, self.context, self.system]))


class _Ask(NamedTuple):
    """A human turn, and where it is among the messages."""

    text: str
    images: int
    place: int


def asked(messages: Sequence[Json], options: Extraction = DEFAULT) -> Asked:
    """What is classified of a conversation; some of it is empty where there is nothing.

    Never fails, whatever the messages hold, and takes well under a millisecond for messages of
    hundreds of thousands of characters.

    Args:
        messages: in OpenAI's shape; tool results may also come as parts of user messages.
        options: how much is taken of what.
    """
    system = cut(_system(messages), options.system_tokens)
    ask = _ask_before(messages, len(messages), options)
    if ask is None:
        programs = _last_of(messages, len(messages), "user")
        return Asked(context=cut(programs, options.context_tokens), system=system)
    answer = _last_of(messages, ask.place, "assistant")
    refers = _refers(ask.text) or _replies(ask.text, answer)
    earlier = _goes_back_to(messages, ask, options)
    size = tokens(ask.text)
    most = options.context_tokens
    if not refers:
        most = min(most, int(min(size, options.ask_tokens) / 2))
    return Asked(
        text=_shortened(ask.text, options.ask_tokens, options),
        context=_window(earlier, answer, most, options),
        system=system,
        refers=refers,
        tokens=size + (tokens(earlier) if refers else 0.0),
        images=ask.images,
    )


def _system(messages: Sequence[Json]) -> str:
    for message in messages[:2]:
        if isinstance(message, Mapping) and _role(message) in _SYSTEM:
            return text_of(message.get("content")).strip()
    return ""


def _ask_before(messages: Sequence[Json], end: int, options: Extraction) -> _Ask | None:
    """The last human turn before a place."""
    for place in range(end - 1, max(-1, end - 1 - _LOOKED_AT), -1):
        message = messages[place]
        if not isinstance(message, Mapping) or message.get("role") != "user":
            continue
        content = message.get("content")
        text = typed(text_of(content), options.markers, options.wrappers, options.notices)
        images = _images(content)
        if text or images:
            return _Ask(text, images, place)
    return None


def _last_of(messages: Sequence[Json], end: int, role: str) -> str:
    """The last text of a role before a place."""
    for place in range(end - 1, max(-1, end - 1 - _LOOKED_AT), -1):
        message = messages[place]
        if isinstance(message, Mapping) and message.get("role") == role:
            text = text_of(message.get("content")).strip()
            if text:
                return text
    return ""


def _goes_back_to(messages: Sequence[Json], ask: _Ask, options: Extraction) -> str:
    """The last ask before it that stands on its own, or else the first that is looked at."""
    found, place = "", ask.place
    for _ in range(options.turns):
        earlier = _ask_before(messages, place, options)
        if earlier is None:
            break
        found, place = earlier.text or found, earlier.place
        if found and not _refers(found):
            break
    return found


def _window(earlier: str, answer: str, most: int, options: Extraction) -> str:
    """Half of it each; what one does not need the other may have."""
    if most < _LEAST_WINDOW:
        return ""
    half = most // 2
    spared = max(0, half - int(tokens(answer)) - 1)
    asked_before = _piece(earlier, half + spared, options, 2 / 3)
    # A proposal or a question, which is what "yes" is said to, comes last.
    said_before = _piece(answer, most - int(tokens(asked_before)), options, 1 / 3)
    return "\n".join(filter(None, [asked_before, said_before]))


def _piece(text: str, most: int, options: Extraction, head: float) -> str:
    """A turn, or nothing where there is too little room for its words to mean anything."""
    if most < _LEAST_WINDOW and tokens(text) > most:
        return ""
    return _shortened(text, most, options, head)


def _shortened(text: str, most: int, options: Extraction, head: float = 2 / 3) -> str:
    if _FENCE in text:
        parts = text.split(_FENCE, _FENCES)
        parts[1::2] = [cut(part, options.code_tokens) for part in parts[1::2]]
        text = _FENCE.join(parts)
    return cut(text, most, head=head)


def _refers(text: str) -> bool:
    """Whether an ask only makes sense with what was said before."""
    size = tokens(text)
    if size > _SHORT or _FENCE in text:
        return False
    if not text:
        return True
    if size <= _ONE_WORD and len(text.split()) <= 2 and not any(map(str.isdigit, text)):  # noqa: PLR2004
        return True
    return any(pattern.match(text) for pattern in (_GOES_ON, _EARLY)) or bool(_BACK.search(text))


def _replies(text: str, answer: str) -> bool:
    """Whether a short ask is the reply to a question."""
    short = tokens(text) <= _SHORT and _FENCE not in text
    return short and answer[-40:].rstrip(" \n*_)\"'").endswith(("?", "\uff1f"))


def _images(content: Any) -> int:
    if not isinstance(content, list | tuple):
        return 0
    return sum(1 for part in content if isinstance(part, Mapping) and _kind(part) in _IMAGES)


def _role(message: Json) -> str:
    return str(message.get("role"))


def _kind(part: Json) -> str:
    return str(part.get("type"))
