"""How long a text is in tokens, nearly enough, and how it is cut to a budget of them.

A tokenizer would take longer than the model that reads the text. Four letters of an alphabet are
about a token; a Chinese character or a Korean syllable is one on its own. Whatever is measured is
first cut to what could fit at best, so a text of any length takes the same time.
"""

import re
from typing import Final

_CHARACTERS: Final = 4
"""Of an alphabet, to a token."""

_WIDE: Final = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Chinese, Japanese and Korean characters, which are a token each."""

_SAMPLE: Final = 2_000
_CUT: Final = " \u2026 "


def tokens(text: str) -> float:
    """About how many tokens a text has; a long one is judged by its first 2,000 characters."""
    sample = text[:_SAMPLE]
    if not sample:
        return 0.0
    return _exactly(sample) * len(text) / len(sample)


def cut(text: str, most: int, *, head: float = 2 / 3) -> str:
    """The text in at most about so many tokens: its head and its tail where it has more.

    Args:
        text: any text.
        most: tokens.
        head: the share of them that the head gets.
    """
    if most <= 0:
        return ""
    longest = most * _CHARACTERS
    if len(text) <= longest and _exactly(text) <= most:
        return text
    ahead = most * head
    first = _head(text[:longest], ahead)
    last = _tail(text[-longest:], most - ahead)
    return f"{first.rstrip()}{_CUT}{last.lstrip()}".lstrip(" ")


def _exactly(text: str) -> float:
    if text.isascii():
        return len(text) / _CHARACTERS
    wide = sum(map(len, _WIDE.findall(text)))
    return wide + (len(text) - wide) / _CHARACTERS


def _head(text: str, most: float) -> str:
    while (size := _exactly(text)) > most:
        text = text[: int(len(text) * most / size)]
    return text


def _tail(text: str, most: float) -> str:
    while (size := _exactly(text)) > most:
        text = text[len(text) - int(len(text) * most / size) :]
    return text
