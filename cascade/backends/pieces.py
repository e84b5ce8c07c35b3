"""Remembers the tokens of a prompt's pieces: a conversation's next turn has only what is new cut.

A special token parts a text, as a tokenizer cuts what is before it and what is behind it apart. So
a prompt can be cut piece by piece, each beginning with the special token that its chat template
writes most often, and a piece that was seen before needs no cutting. The first time that this is
used the prompt is also cut as a whole; where that differs, no piece is used again.
"""

import re
from array import array
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Final

MAX_TOKENS: Final = 1_000_000
_AROUND: Final = 64
_MAX_CANDIDATES: Final = 8
_LOOKS_SPECIAL: Final = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{1,20}\]")

Cut = Callable[[str], Awaitable[Sequence[int] | None]]
"""Cuts a text into tokens; None when it cannot."""


@dataclass(frozen=True, slots=True)
class Special:
    """A special token: how it is written, and its id."""

    text: str
    token: int


async def special_of(prompt: str, *, special: Cut, plain: Cut) -> Special | None:
    """The special token that a prompt has most often, two times at least.

    Args:
        prompt: any that a chat template wrote.
        special: cuts a text in which special tokens count as such.
        plain: cuts one in which they are text.
    """
    found = Counter(_LOOKS_SPECIAL.findall(prompt))
    for text, times in found.most_common(_MAX_CANDIDATES):
        if times > 1 and len(ids := await special(text) or ()) == 1:
            as_text = await plain(text)
            if as_text is not None and len(as_text) > 1:
                return Special(text, ids[0])
    return None


class Pieces:
    """The tokens of pieces, by tenant: how long it takes to cut a text tells nobody of another's.

    Args:
        special: the token that every piece but a prompt's first begins with.
        max_tokens: how many are remembered, four bytes each, in the pieces that were used last; a
            piece counts for 64 more, as it takes memory of its own.
    """

    def __init__(self, special: Special, *, max_tokens: int = MAX_TOKENS) -> None:
        self._special = special
        self._max_tokens = max_tokens
        self._known: OrderedDict[bytes, array[int]] = OrderedDict()
        self._tokens = 0
        self._is_right: bool | None = None

    async def ids(self, prompt: str, tenant: str, *, whole: Cut, inner: Cut) -> "array[int] | None":
        """The prompt's tokens; None when it cannot be cut.

        Args:
            prompt: as a chat template wrote it.
            tenant: whose it is.
            whole: cuts a text, and adds what the model wants at a prompt's beginning.
            inner: cuts a text without adding anything.
        """
        if self._is_right is False:
            return _packed(await whole(prompt))
        texts = self._cut_up(prompt)
        keys = [_key(tenant, text, is_first=not at) for at, text in enumerate(texts)]
        # What is behind a piece may matter to its end, so the last is neither looked up nor kept.
        found = [*map(self._known.get, keys[:-1]), None]
        missing = [at for at, ids in enumerate(found) if ids is None]
        told = await (inner if missing[0] else whole)("".join(texts[at] for at in missing))
        parts = [] if told is None else self._parts(told, starts_first=not missing[0])
        if len(parts) != len(missing):
            return _packed(None if told is None else await whole(prompt))
        cut = dict(zip(missing, parts, strict=True))
        ids = array("I")
        for at, (key, known) in enumerate(zip(keys, found, strict=True)):
            piece = cut[at] if known is None else known
            ids += piece
            if at < len(keys) - 1:
                self._remember(key, piece)
        if len(missing) == len(keys) or self._is_right:
            return ids
        return await self._checked(prompt, ids, whole)

    async def _checked(self, prompt: str, ids: "array[int]", whole: Cut) -> "array[int] | None":
        at_once = _packed(await whole(prompt))
        if at_once is not None:
            self._is_right = at_once == ids
        return at_once

    def _cut_up(self, prompt: str) -> list[str]:
        first, *others = prompt.split(self._special.text)
        return [first, *(self._special.text + each for each in others)]

    def _parts(self, ids: Sequence[int], *, starts_first: bool) -> list["array[int]"]:
        """The tokens of each piece; they begin where the special token is."""
        starts = [at for at, token in enumerate(ids) if token == self._special.token]
        if starts_first or starts[:1] != [0]:
            starts.insert(0, 0)
        return [array("I", ids[i:j]) for i, j in pairwise([*starts, len(ids)])]

    def _remember(self, key: bytes, ids: "array[int]") -> None:
        if (before := self._known.pop(key, None)) is not None:
            self._tokens -= len(before) + _AROUND
        self._known[key] = ids
        self._tokens += len(ids) + _AROUND
        while self._tokens > self._max_tokens:
            self._tokens -= len(self._known.popitem(last=False)[1]) + _AROUND


def _packed(ids: Sequence[int] | None) -> "array[int] | None":
    return None if ids is None else array("I", ids)


def _key(tenant: str, text: str, *, is_first: bool) -> bytes:
    whose = f"{len(tenant)}:{tenant}{is_first:d}{text}"
    return blake2b(whose.encode(errors="surrogatepass"), digest_size=16).digest()
