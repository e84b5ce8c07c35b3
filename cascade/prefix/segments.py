"""A prompt's segments as hashes, so that the audit log can say in words why one was not warm.

A hash is keyed with the tenant: two tenants with the same prompt have nothing in common in the log,
and a list of usual system prompts has to be tried tenant by tenant. With a secret key as well, who
has the log but not the key cannot try at all.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Final, Literal

from cascade.prefix.canonical import Rendered, tool_rendering, tools_of
from cascade.prefix.masking import masked
from cascade.types import ChatRequest, Json

SegmentName = Literal["tools", "system", "pack", "history", "suffix"]
Mask = Literal["dates", "ids", "order", "all"]

MAX_PARTS: Final = 256
MAX_REMEMBERED: Final = 10_000

_SYSTEM: Final = frozenset({"system", "developer"})
_DOCUMENT: Final = b"\xfb"
_OPENING: Final = b"<documents"
_CLOSING: Final = b"</documents>"
_DOCUMENT_END: Final = b"</document>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a prompt, as hashes from which nobody can read it.

    Attributes:
        name: tools; system; pack (retrieved documents, where they are marked); history (up to the
            last answer); suffix (what is new).
        tokens: how long it is, about.
        raw: hash of it as it is.
        masked: hash of it with something taken out: "dates" (dates and times), "ids" (identifiers
            and long numbers), "order" (its parts sorted), "all" (all of these). One that is equal
            to raw is left out: `under` knows.
        parts: hash of each tool, document or message in it, in order; a message has the same in
            suffix and in history. Of more than 256 the last are kept, and before them stands how
            many are missing, as "+744".
    """

    name: SegmentName
    tokens: int
    raw: str
    masked: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[str] = ()

    def under(self, mask: Mask) -> str:
        """The hash with that taken out; two segments that agree in it differ in nothing else."""
        return self.masked.get(mask, self.raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A prompt's segments, in the order in which a model reads them; empty ones are left out."""

    segments: Sequence[Segment]

    @property
    def stable_tokens(self) -> int:
        """Tokens before the conversation begins: what other conversations may share."""
        return sum(s.tokens for s in self.segments if s.name in {"tools", "system", "pack"})


class Fingerprints:
    """Makes fingerprints; a part that was seen before, as a history's are, is not read again.

    Several threads may ask at the same time.

    Args:
        key: a secret of up to 64 bytes; hashes made with another do not compare.
        max_remembered: parts whose hashes are kept, the latest used.
    """

    def __init__(self, *, key: bytes = b"", max_remembered: int = MAX_REMEMBERED) -> None:
        self._key = key
        self._max_remembered = max_remembered
        self._known: OrderedDict[bytes, _Hashes] = OrderedDict()
        self._lock = Lock()

    def of(
        self, request: ChatRequest, *, tokens_per_byte: float, rendered: Rendered | None = None
    ) -> Fingerprint:
        """The fingerprint of a request as the client sent it; see `fingerprint`.

        Args:
            request: as the client sent it.
            tokens_per_byte: of its rendering.
            rendered: that, by whoever has it.
        """
        tenant = request.tenant.encode(errors="surrogatepass")
        root = blake2b(tenant, key=self._key, digest_size=32).digest()
        segments = []
        for name, parts in _parts(request, rendered or Rendered.of(request)):
            hashes = [self._hashes(root, part) for part in parts]
            tokens = round(sum(len(part.text) for part in parts) * tokens_per_byte)
            if hashes:
                segments.append(_segment(name, tokens, hashes, root))
        return Fingerprint(segments=segments)

    def _hashes(self, root: bytes, part: "_Part") -> "_Hashes":
        raw = _digest(root, part.text)
        with self._lock:
            found = self._known.get(raw)
            if found is not None:
                self._known.move_to_end(raw)
                return found
        found = _Hashes.of(root, raw, part)
        with self._lock:
            self._known[raw] = found
            if len(self._known) > self._max_remembered:
                self._known.popitem(last=False)
        return found


def fingerprint(request: ChatRequest, *, tokens_per_byte: float, key: bytes = b"") -> Fingerprint:
    """The fingerprint of one request.

    Documents are those between <documents> and </documents> in the system prompt or in the first
    message after it, each closed by </document>. The marks are text, so every model takes them; a
    field of the request would be refused by some. Where a later message has documents they stay a
    part of it, and only its mask "order" tells them apart.

    Args:
        request: as the client sent it.
        tokens_per_byte: of its rendering, of about the models that get it.
        key: a secret of up to 64 bytes that goes into all hashes.
    """
    return Fingerprints(key=key).of(request, tokens_per_byte=tokens_per_byte)


@dataclass(frozen=True, slots=True)
class _Part:
    """A tool, document or message, as it is and with what is in it sorted."""

    text: bytes
    ordered: Callable[[], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hashes:
    """Of one part: as it is, and under each mask."""

    raw: bytes
    dates: bytes
    ids: bytes
    order: bytes
    all: bytes

    @classmethod
    def of(cls, root: bytes, raw: bytes, part: _Part) -> "_Hashes":
        mine = masked(part.text)
        ordered = part.ordered()
        its = mine if ordered == part.text else masked(ordered)
        return cls(
            raw=raw,
            dates=_digest(root, mine.dates),
            ids=_digest(root, mine.ids),
            order=_digest(root, ordered),
            all=_digest(root, its.both),
        )


def _segment(name: SegmentName, tokens: int, hashes: Sequence[_Hashes], root: bytes) -> Segment:
    def one(digests: Sequence[bytes]) -> str:
        return blake2b(b"".join(digests), key=root, digest_size=8).hexdigest()

    raws = [each.raw for each in hashes]
    raw = one(raws)
    digests: dict[Mask, list[bytes]] = {
        "dates": [each.dates for each in hashes],
        "ids": [each.ids for each in hashes],
        "order": sorted(each.order for each in hashes),
        "all": sorted(each.all for each in hashes),
    }
    missing = len(hashes) - MAX_PARTS
    return Segment(
        name=name,
        tokens=tokens,
        raw=raw,
        masked={mask: one(each) for mask, each in digests.items() if each != raws},
        parts=[
            *([f"+{missing}"] if missing > 0 else ()),
            *(each.raw[:4].hex() for each in hashes[-MAX_PARTS:]),
        ],
    )


def _parts(request: ChatRequest, rendered: Rendered) -> list[tuple[SegmentName, list[_Part]]]:
    tools = [
        _Part(text, partial(tool_rendering, tool, ordered=False))
        for text, tool in zip(rendered.tools, tools_of(request), strict=True)
    ]
    messages = list(rendered.messages)
    begun = _leading(request.messages)
    documents: list[bytes] = []
    for at in range(min(begun + 1, len(messages))):
        messages[at], found = _without_documents(messages[at])
        documents += found
    answered = _answered(request.messages, begun)
    parts = [_Part(text, partial(_sorted, text)) for text in messages]
    return [
        ("tools", tools),
        ("system", parts[:begun]),
        ("pack", [_Part(text, partial(bytes, text)) for text in documents]),
        ("history", parts[begun:answered]),
        ("suffix", parts[answered:]),
    ]


def _leading(messages: Sequence[Json]) -> int:
    """How many messages the system prompt has."""
    others = (at for at, each in enumerate(messages) if each.get("role") not in _SYSTEM)
    return next(others, len(messages))


def _answered(messages: Sequence[Json], begun: int) -> int:
    """Where the last answer ends; where the conversation begins when there is none."""
    said = (at for at in range(len(messages), begun, -1) if _is_answer(messages[at - 1]))
    return next(said, begun)


def _is_answer(message: Json) -> bool:
    return message.get("role") == "assistant"


def _sorted(text: bytes) -> bytes:
    rest, documents = _without_documents(text)
    return b"".join([rest, *sorted(documents)]) if documents else text


def _without_documents(text: bytes) -> tuple[bytes, list[bytes]]:
    """A message without its documents, and these; a block that is not closed is text."""
    kept, found, at = [], [], 0
    start = text.find(_OPENING)
    while start >= 0:
        named = start + len(_OPENING)
        if text[named : named + 1] in {b">", b" ", b"\n"}:
            inner, end = text.find(b">", named), text.find(_CLOSING, named)
            if not named <= inner < end:
                break
            kept.append(text[at:start])
            inside = text[inner + 1 : end].split(_DOCUMENT_END)
            found += [_DOCUMENT + each.strip() for each in inside if each.strip()]
            at = named = end + len(_CLOSING)
        start = text.find(_OPENING, named)
    return (b"".join([*kept, text[at:]]), found) if found else (text, found)


def _digest(root: bytes, text: bytes) -> bytes:
    return blake2b(text, key=root, digest_size=16).digest()
