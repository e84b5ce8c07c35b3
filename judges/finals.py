"""What two answers are compared by: all of their words, or what each comes to in the end."""

import json
import re
import string
from typing import Final

from judges.expected import last_number

_FENCED: Final = re.compile(r"\A```\w*\s*(.*?)\s*```\Z", re.DOTALL)
_LETTER: Final = re.compile(r"\A\W*([A-Ea-e])(?:\W*\Z|[.:)\]]\s)")
_NAMED: Final = re.compile(
    r"\b(?:answer|option|choice)\b(?:\s+is)?\s*:?\s*[*(\[]*([A-E])\b", re.IGNORECASE
)
_EDGES: Final = string.punctuation + string.whitespace


def normalised(text: str) -> str:
    """The text without case, runs of white space and punctuation around words."""
    words = (word.strip(_EDGES) for word in text.casefold().split())
    return " ".join(word for word in words if word)


def final_answer(text: str) -> str:
    """What an answer comes to, in a form that equal answers share.

    A JSON object or list as it is, key order and spaces aside; else a chosen letter; else the last
    number; else the normalised text.
    """
    text = text.strip()
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict | list):
        return "json " + json.dumps(value, sort_keys=True)
    if letter := _LETTER.match(text) or _NAMED.search(text):
        return f"letter {letter[1].upper()}"
    number = last_number(text)
    return f"number {number!r}" if number is not None else f"text {normalised(text)}"
