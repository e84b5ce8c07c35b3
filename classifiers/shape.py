"""How a question is built: its choices, its sentences and its words, in a few more cheap numbers.

Which topic a question is of, an embedding tells. That its answers are names, figures or whole
sentences, and that it describes a person or asks for a term, it hardly tells, and questions of one
topic differ by just that in how well models of different size do. Together with `features` these
raise what trees learn; docs/routing-quality.md says by how much.
"""

import math
import re
from collections.abc import Sequence

_CHOICE = re.compile(r"^[ \t]*\(?(?:[A-Ja-j]|\d{1,2}|[가-하])[.):][ \t]+(\S[^\n]*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?\u3002\uff1f](?=\s|$)")
_LETTERS = re.compile(r"[A-Za-z]{2,}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMMON = _words("the of a to in is and that for by it as are on with an be was at")
_PERSON = _words("he she his her him man woman boy girl patient court plaintiff defendant client")
_TERM = _words("called known term defined definition refers named")
_DEGREE = _words("most best least difference compare primarily likely mainly")
_WHOLE = _words("all none both neither above")
_LONG_WORD = 9
_SHORT_CHOICE = 3


def shape(text: str) -> dict[str, float]:
    """The numbers; lengths are logarithms of characters, the others shares or flags.

    Args:
        text: what is asked; the caller bounds its length.
    """
    found = list(_CHOICE.finditer(text))
    stem = text[: found[0].start()] if found else text
    words = _WORD.findall(stem.lower())
    return _of_stem(stem, words) | _of_choices([each[1].strip() for each in found], words)


def _of_stem(stem: str, words: Sequence[str]) -> dict[str, float]:
    known = set(words)
    sentences = len(_SENTENCE_END.findall(stem)) + 1
    names = _LETTERS.findall(stem)[1:]
    return {
        "log_stem": math.log1p(len(stem)),
        "log_sentences": math.log1p(sentences),
        "sentence_words": len(words) / sentences,
        "ends_asking": float(stem.rstrip().endswith(("?", "\uff1f"))),
        "digits": _share([char.isdigit() for char in stem]),
        "capitalised": _share([word[0].isupper() for word in names]),
        "distinct_words": len(known) / max(1, len(words)),
        "common_words": _share([word in _COMMON for word in words]),
        "long_words": _share([len(word) >= _LONG_WORD for word in words]),
        "person": float(not _PERSON.isdisjoint(known)),
        "term": float(not _TERM.isdisjoint(known)),
        "degree": float(not _DEGREE.isdisjoint(known)),
    }


def _of_choices(choices: Sequence[str], asked: Sequence[str]) -> dict[str, float]:
    lengths = [len(choice) for choice in choices]
    mean = sum(lengths) / max(1, len(lengths))
    apart = math.sqrt(sum((n - mean) ** 2 for n in lengths) / max(1, len(lengths)))
    words = [_WORD.findall(choice.lower()) for choice in choices]
    heard = set(asked)
    every = [word for some in words for word in some]
    return {
        "log_choice": math.log1p(mean),
        "choice_spread": apart / (mean + 1.0),
        "choices_short": _share([length <= _SHORT_CHOICE for length in lengths]),
        "choices_capital": _share([choice[0].isupper() for choice in choices]),
        "choices_closed": _share([choice.endswith(".") for choice in choices]),
        "choices_numeric": _share([char.isdigit() for choice in choices for char in choice]),
        "choices_whole": _share([not _WHOLE.isdisjoint(some[:1]) for some in words]),
        "choices_repeat": _share([word in heard for word in every]),
    }


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / max(1, len(flags))
