"""Finds the sums in a text and works them out again.

Answers show their working as `3 x 60 = 180 meters` or `20% of 40 = 8`, with units, currency signs
and words between the numbers. What cannot be read as a sum is passed over, never held against it.
"""

import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

NUMBER: Final = re.compile(r"(?<![\w.])[-\u2212]?[$\u20ac\u00a3]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_STOPS: Final = re.compile(r"\n|(?<=[a-z)])\. |; |, (?=[a-z])")
_NOTES: Final = re.compile(r"<<.*?>>")
_OF: Final = re.compile(r"(?<=%)\s*of\s+(?=[$\d])|(?<=\d/\d)\s*of\s+(?=[$\d])")
_RATE: Final = re.compile(r"[A-Za-z]+/[A-Za-z]+")
_WORD: Final = re.compile(r"(?<![A-Za-z])(?!x(?![A-Za-z]))[A-Za-z'\u2019]+")
_SUM: Final = r"[\d$\u20ac\u00a3.,()%+\-*/x\u00d7\u00f7\u00b7\u2212\\\s]+"
_SUM_AT_END: Final = re.compile(rf"({_SUM})\Z")
_SUM_AT_START: Final = re.compile(rf"\A({_SUM})")
_RESULT: Final = re.compile(r"\A\s*\(?[$\u20ac\u00a3]?\s*(-?[\d,]*\.?\d+(?:/\d+)?)(?:\s*%)?")
_OPERATION: Final = re.compile(r"\d\s*\)*\s*[-+*/]\s*\(*\s*\.?\d")
_TIMES: Final = re.compile(r"(?<=[\d)\s])x(?=[\s\d(.])")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3})")
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_FULL_STOP: Final = re.compile(r"\A[\s.,]*\.(?!\d)|\.[\s.,]*\Z")
_SIGNS: Final = str.maketrans(
    {"$": None, "\u20ac": None, "\u00a3": None, "\\": None}
    | {"\u00d7": "*", "\u00b7": "*", "\u00f7": "/", "\u2212": "-"}
)
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<value>\d+\.?\d*|\.\d+)|(?P<operator>[-+*/])|(?P<open>\()|(?P<close>\)))\s*"
)
_NEGATION: Final = "neg"
_BINDING: Final = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, _NEGATION: 3}
_OPERATIONS: Final = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
MOST: Final = 100
_LONGEST: Final = 200
"""Characters of a sum that are looked at: a real one is far shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """One `left = right` of a text.

    Attributes:
        operands: the numbers on the left.
        works_out: whether the left side, worked out, is what the right side says; True where there
            is no operation, so nothing to work out.
        result: what the right side says.
        is_sum: whether the left side has an operation.
    """

    operands: tuple[float, ...]
    works_out: bool
    result: float
    is_sum: bool


def numbers(text: str) -> list[float]:
    """All numbers in a text, in order; thousands separators and currency signs are read over."""
    return [n for found in NUMBER.findall(text) if math.isfinite(n := _float(found))]


def same(a: float, b: float) -> bool:
    """Whether two numbers are the same up to the rounding that people do."""
    # To cents, to four digits where it is large, to two where it is small.
    slack = min(0.0051 + 1e-4 * abs(b), 0.02 * abs(b))
    return abs(a - b) <= max(1e-6, slack)


def equations(text: str) -> list[Equation]:
    """The equations of a text, in order, at most `MOST` of them. `a = b = c` is two."""
    found: list[Equation] = []
    for piece in _STOPS.split(_NOTES.sub(" ", text)):
        sides = piece.split("=")
        for left, right in pairwise(sides):
            if len(found) == MOST:
                return found
            if (equation := _equation(left[-_LONGEST:], right[:_LONGEST])) is not None:
                found.append(equation)
    return found


def _equation(left: str, right: str) -> Equation | None:
    bare = _WORD.sub(" ", _RATE.sub("", _OF.sub(" * ", left)))
    tail = _SUM_AT_END.search(bare)
    stated = _RESULT.match(right)
    if tail is None or stated is None:
        return None
    result = _value(_plain(stated[1]))
    term = _readable(_plain(tail[1]))
    if result is None or term is None:
        return None
    value = _value(term)
    if value is None:
        return None
    is_sum = _OPERATION.search(term) is not None
    return Equation(
        operands=tuple(numbers(term)),
        works_out=not is_sum or _agrees(value, result, right),
        result=result,
        is_sum=is_sum,
    )


def _agrees(value: float, result: float, right: str) -> bool:
    """As it stands, as a percentage, or as the sum that the right side is itself."""
    if same(value, result) or same(value * 100, result) or same(value / 100, result):
        return True
    head = _SUM_AT_START.match(_WORD.sub(" ", right))
    other = _value(_plain(head[1])) if head else None
    return other is not None and same(value, other)


def _readable(term: str) -> str | None:
    """The longest end of a term that is a sum: what stands before it belongs to the sentence."""
    for start in _starts(term):
        rest = term[start:].lstrip("+*/) ")
        if any(c.isdigit() for c in rest) and _value(rest) is not None:
            return rest
    return None


def _starts(term: str) -> Iterator[int]:
    yield 0
    yield from (at + 1 for at, c in enumerate(term) if c == " ")


def _plain(term: str) -> str:
    """A term in Python's notation."""
    term = _THOUSANDS.sub("", _TIMES.sub("*", term.translate(_SIGNS)))
    return _FULL_STOP.sub("", _PERCENT.sub(r"(\1/100)", term)).strip(" ,\n\t")


def _value(term: str) -> float | None:
    """A sum worked out: plus, minus, times, divided by and brackets; None if it is none.

    Two stacks, of values and of what is still to be done with them (E. Dijkstra's shunting yard).
    """
    values: list[float] = []
    waiting: list[str] = []
    try:
        for token, kind in _tokens(term):
            _take(token, kind, values, waiting)
        while waiting:
            _carry_out(waiting.pop(), values)
    except (ValueError, KeyError, IndexError, ArithmeticError):
        return None
    return values[0] if len(values) == 1 and math.isfinite(values[0]) else None


def _take(token: str, kind: str, values: list[float], waiting: list[str]) -> None:
    if kind == "value":
        values.append(float(token))
        return
    if kind == "operator" and token != _NEGATION:
        while waiting and _BINDING[waiting[-1]] >= _BINDING[token]:
            _carry_out(waiting.pop(), values)
    if kind == "close":
        while waiting[-1] != "(":
            _carry_out(waiting.pop(), values)
        waiting.pop()
    else:
        waiting.append(token)


def _tokens(term: str) -> Iterator[tuple[str, str]]:
    """Tokens with their kinds: value, open, close, operator; a sign before a value is a negation.

    Raises:
        ValueError: the term is no sum.
    """
    at, wants_value = 0, True
    while at < len(term):
        found = _TOKEN.match(term, at)
        if found is None or (found.lastgroup in {"value", "open"}) != wants_value:
            if found is None or found[0].strip() != "-" or not wants_value:
                raise ValueError("not a sum")
            yield _NEGATION, "operator"
        else:
            yield found[0].strip(), found.lastgroup or ""
            wants_value = found.lastgroup in {"operator", "open"}
        at = found.end()
    if wants_value:
        raise ValueError("it ends where a value should be")


def _carry_out(operation: str, values: list[float]) -> None:
    if operation == _NEGATION:
        values.append(-values.pop())
        return
    right, left = values.pop(), values.pop()
    values.append(_OPERATIONS[operation](left, right))


def _float(text: str) -> float:
    return float(text.translate(_SIGNS).replace(",", "").rstrip("."))
