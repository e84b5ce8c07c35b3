"""What was asked for, as features: where a small model's doubt ends and a large one's begins.

What an answer looks like says whether it is right. It says next to nothing of whether a larger
model would do better, and only that difference makes going up worth its price. What was asked for
does: a form to be kept, a fact to be known, a long sum. The features are made for a panel's model
to weigh, so this judge never gives a score. They count; they do not understand. English, as far as
words are read.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from cascade.conversation import last_ask, text_of
from cascade.types import ChatRequest, Completion, Json, Verdict
from judges.equations import numbers

LONGEST: Final = 20_000
"""Characters of an ask that are looked at."""
WANTED: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "code": r"```|>>> |\b(?:function|method|class|script|program|code|python|javascript|java"
        r"|rust|sql|regex|implement)\b",
        "choice": r"\b(?:which of|one of|either|whether|true or false|yes or no|labels?|categor\w+"
        r"|classif\w+|choose|pick|options?)\b|\w+, \w+ or \w+",
        "quantity": r"\b(?:how (?:many|much|old|long|far|tall)|number of|calculate|compute|sum"
        r"|total|average|percent\w*|difference|product|remainder|times|divided|plus|minus)\b|%",
        "change": r"\b(?:re(?:write|phrase|word|place|order|verse)|paraphrase|translat\w+|correct"
        r"|fix|change|convert|turn|put|make|shorten|summari[sz]e|sort|format|remove|swap|edit)\b",
        "extract": r"\b(?:extract|find|list|read|fill in|identify|take|split|parse)\b",
        "who": r"\bwho(?:se|m)?\b",
        "what": r"\bwhat\b",
        "when": r"\b(?:when|what year|which year|what date)\b",
        "where": r"\bwhere\b",
        "which": r"\bwhich\b",
        "why": r"\b(?:why|explain|because)\b",
        "brief": r"\b(?:only|just|nothing else|alone|one word|single|short|brief\w*)\b",
        "exact": r"\b(?:exactly|must|at (?:most|least)|without|except|never|do not|don't|keep"
        r"|same|ignor\w+)\b",
        "conditions": r"\b(?:if|unless|when|otherwise|else|until)\b",
        "parts": r"\b(?:and|then|also|after|before|first|second|finally)\b",
        "all": r"\b(?:all|each|every|both|any)\b",
        "negations": r"\b(?:not|no|none|without|never)\b|n't\b",
    }.items()
}
"""Words by what they ask for; a feature each, how often they occur."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_FIGURE: Final = re.compile(r"\d[\d.,]*")
_OPERATION: Final = re.compile(r"(?<=[\d)])\s*[-+*/^\u00d7\u00f7]\s*(?=[\d(])")
_PRODUCT: Final = re.compile(r"(?<=[\d)])\s*[*\u00d7]\s*(?=[\d(])")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'[^'\n]*'|`[^`]*`|\u201c[^\u201d]*\u201d")
_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z]\w+")
_SENTENCE: Final = re.compile(r"[.!?](?:\s|\Z)|\n+")
_JSON: Final = frozenset({"json_object", "json_schema"})
_MOST: Final = 20.0
"""Counts go no further: a text ten times as long is not ten times as hard."""


class AskedJudge:
    """Gives features of the request, and no score.

    Attributes:
        scores: that it never does, so that a panel without a model does not wait for one.
    """

    scores: Final = False

    growing = True

    def __init__(self, *, name: str = "asked") -> None:
        self.name = name
        self.needs: Json = {}

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """The same for any answer."""
        del completion
        return Verdict(
            judge=self.name,
            score=None,
            features=features_of(request),
            reason="it looks at what was asked, not at the answer",
        )


def features_of(request: ChatRequest) -> dict[str, float]:
    """All features; the same names for any request, every value finite."""
    ask = last_ask(request.messages)[-LONGEST:]
    return {
        **_size(request, ask),
        **{name: _count(pattern, ask) for name, pattern in WANTED.items()},
        **_figures(ask),
        **_wording(ask),
        **_form(request),
    }


def _size(request: ChatRequest, ask: str) -> dict[str, float]:
    """Logarithms of lengths, and how the ask is built up."""
    told = [
        text_of(m.get("content"))
        for m in request.messages
        if m.get("role") in {"system", "developer"}
    ]
    return {
        "length": math.log1p(len(ask)),
        "told_length": math.log1p(sum(map(len, told))),
        "turns": math.log1p(len(request.messages)),
        "sentences": _count(_SENTENCE, ask),
        "lines": min(_MOST, float(ask.count("\n"))),
        "items": min(_MOST, float(ask.count(","))),
    }


def _figures(ask: str) -> dict[str, float]:
    """How many numbers, how large, and what is to be done with them."""
    found = _FIGURE.findall(ask)
    digits = [sum(map(str.isdigit, figure)) for figure in found]
    largest = max(map(abs, numbers(ask)), default=0.0)
    return {
        "numbers": min(_MOST, float(len(found))),
        "digits": math.log1p(sum(digits)),
        "most_digits": min(_MOST, float(max(digits, default=0))),
        "largest": math.log1p(min(largest, 1e12)),
        "fractions": min(_MOST, float(sum("." in figure.rstrip(".,") for figure in found))),
        "operations": _count(_OPERATION, ask),
        "products": _count(_PRODUCT, ask),
    }


def _wording(ask: str) -> dict[str, float]:
    words = _WORD.findall(ask)
    letters = sum(map(len, words))
    return {
        "word_length": letters / max(1, len(words)),
        "foreign": sum(not c.isascii() for word in words for c in word) / max(1, letters),
        "names": _count(_NAME, ask),
        "quoted": _count(_QUOTED, ask),
        "question": float("?" in ask),
        "colon": float(":" in ask),
        "variety": len({word.casefold() for word in words}) / max(1, len(words)),
    }


def _form(request: ChatRequest) -> dict[str, float]:
    """What shape the answer must have, as far as the request says so to machines."""
    form = request.params.get("response_format") or {}
    schema = (form.get("json_schema") or {}).get("schema") or {}
    fields = _fields(schema)
    return {
        "json": float(form.get("type") in _JSON),
        "fields": min(_MOST, float(len(fields))),
        "typed_fields": float(sum(field.get("type") in {"number", "integer"} for field in fields)),
        "chosen_fields": float(sum("enum" in field for field in fields)),
        "deep_fields": float(sum(field.get("type") in {"array", "object"} for field in fields)),
        "tools": min(_MOST, float(len(request.tools or ()))),
    }


def _fields(schema: Any) -> list[Json]:
    """The properties that a JSON Schema names at its top."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found = properties.values() if isinstance(properties, Mapping) else ()
    return [field for field in found if isinstance(field, Mapping)]


def _count(pattern: re.Pattern[str], text: str) -> float:
    return min(_MOST, float(sum(1 for _ in pattern.finditer(text))))
