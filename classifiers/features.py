"""What a request looks like, in a few cheap numbers that stand beside its embedding.

A model of meaning says what a text is about; how long it is, how many numbers and conditions it
holds and in which form the answer is wanted, it says badly. These say it in microseconds and can be
read by a person in the audit log.
"""

import math
import re
from collections.abc import Mapping, Sequence

from cascade.types import ChatRequest
from classifiers.shape import shape
from classifiers.text import Asked

TAG = "tag."
"""Begins the name of a feature that is 1 where a request has a tag with a value, else 0."""

_READ_CHARACTERS = 2_000
"""Of a longer text its head is read; its length is that of the whole."""

_MOST = 50.0
"""Counts above this are all alike."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]")
_HAN_KANA = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_CODE = re.compile(
    r"```|^[ \t]*(?:def|class|import|from|return|for|if|public|private|const|let|var|fn)\b.*[:;{(]"
    r"|#include|=>|\(\)|\{\s*$|;\s*$|\bSELECT\b.+\bFROM\b",
    re.MULTILINE,
)
_QUESTION = _words(
    "what which who whom whose when where why how is are was were do"
    " does did can could should would will 무엇 어떤 누가 누구 언제 어디 왜 어떻 몇"
)
_SIGN = re.compile(
    r"[=+*/^\u00d7\u00f7\u221a\u2211\u222b\u2264\u2265]|\d[ ]?[-x%][ ]?\d|\\(?=[a-z])"
)
_MATHS = _words(
    "sum product equation solve integral derivative probability percent"
    " average mean ratio times divided multiplied total calculate"
    " compute triangle angle polynomial matrix theorem 더하 곱하 나누 확률 평균 비율"
    " 계산"
)
_CONSTRAINTS = _words(
    "must only exactly least most without never always each every"
    " unless not avoid include ensure between 반드시 절대 이상 이하 마다 없이"
)
_STEPS = _words(
    "prove derive explain step compare analyze analyse design refactor"
    " debug optimize optimise why 증명 설명 비교 분석 설계 단계"
)
_CHOICE = re.compile(r"^[ \t]*\(?(?:[A-Ja-j]|\d{1,2}|[가-하])[.):]\s+\S", re.MULTILINE)
_NEGATION = _words("NOT EXCEPT LEAST FALSE INCORRECT")
_BLANK = re.compile(r"_{2,}")


def text_features(text: str) -> dict[str, float]:
    """The numbers that the text alone gives; counts are logarithms, shares are of its characters.

    At most the first 2,000 characters are read, so a text of any length takes microseconds.
    """
    head = text[:_READ_CHARACTERS]
    size = max(1, len(head))
    words = _WORD.findall(head.lower())
    capitals = _CAPITALS.findall(head)
    letters = sum(map(len, words))
    found = {
        "log_characters": math.log1p(len(text)),
        "log_words": math.log1p(len(words)),
        "word_length": letters / max(1, len(words)),
        "log_lines": _count(head.count("\n")),
        "log_numbers": _count(len(_NUMBER.findall(head))),
        "log_capitals": _count(len(capitals)),
        "log_questions": _count(head.count("?") + head.count("\uff1f")),
        "log_constraints": _count(_among(words, _CONSTRAINTS)),
        "log_choices": _count(len(_CHOICE.findall(head))),
        "log_maths": _count(len(_SIGN.findall(head)) + _among(words, _MATHS)),
        "log_blanks": _count(len(_BLANK.findall(head))),
        "log_quotes": _count(head.count('"') + head.count("\u201c")),
        "punctuation": (size - letters - head.count(" ")) / size,
        "question_word": float(_among(words[:1], _QUESTION) > 0),
        "code": float(_CODE.search(head) is not None),
        "negation": float(not _NEGATION.isdisjoint(capitals)),
        "steps": float(_among(words, _STEPS) > 0),
    }
    return found | _scripts(head, size)


def request_features(request: ChatRequest) -> dict[str, float]:
    """The numbers that stand around the text: the conversation, tools, form and history."""
    wanted = request.params.get("response_format")
    return {
        "log_turns": _count(len(request.messages)),
        "log_tools": _count(len(request.tools or ())),
        "json": float(isinstance(wanted, Mapping) and wanted.get("type") != "text"),
        "escalation": request.escalation,
        **{f"{TAG}{name}={value}": 1.0 for name, value in request.tags.items()},
    }


def features_of(request: ChatRequest, ask: Asked) -> dict[str, float]:
    """All of them.

    Args:
        request: as it came.
        ask: what of it is classified.
    """
    text = ask.said if ask.refers else ask.text
    return {
        **text_features(text),
        **shape(text[:_READ_CHARACTERS]),
        **request_features(request),
        "log_tokens": math.log1p(ask.tokens),
        "refers": float(ask.refers),
        "images": float(ask.images > 0),
    }


def _count(number: float) -> float:
    return math.log1p(min(number, _MOST))


def _among(words: Sequence[str], known: frozenset[str]) -> int:
    """How many words are known; of Korean ones, which take endings, by their first two letters."""
    return sum(word in known or (word[:2] in known and not word.isascii()) for word in words)


def _scripts(head: str, size: int) -> dict[str, float]:
    if head.isascii():
        return {"hangul": 0.0, "han_kana": 0.0, "latin": 1.0}
    hangul, han = len(_HANGUL.findall(head)) / size, len(_HAN_KANA.findall(head)) / size
    latin = len(_LATIN.findall(head))
    other = sum(map(str.isalpha, head)) - latin
    return {"hangul": hangul, "han_kana": han, "latin": latin / max(1, latin + other)}


TEXT = tuple(sorted(text_features("")))
"""Names of those that the text alone gives."""

KNOWN = frozenset(features_of(ChatRequest(id="", messages=()), Asked()))
"""Names of all features but those of tags."""
