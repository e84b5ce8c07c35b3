"""Takes out of a text what identifies a person: addresses, phone, card and resident numbers.

The recognisers are Presidio's, without a language model: what they find has a form. Some of their
patterns end at a word's boundary, and Korean particles follow a number or an address without one,
so those get patterns of their own here. Names and postal addresses have no form and stay.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from presidio_analyzer import Pattern, PatternRecognizer
from presidio_analyzer.predefined_recognizers import CreditCardRecognizer, PhoneRecognizer

REGIONS = ("KR", "US", "GB", "DE", "FR", "JP", "CN", "IN")
"""Whose phone numbers are known without a country code; with one, all are."""

DATA = "<DATA>"
"""What is left of an image or a file that is part of a message."""

# A resident or foreigner number: birth date, then seven digits of which the first is 1 to 8.
_RESIDENT = r"(?<!\d)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\s?[-\u2013]?\s?[1-8]\d{6}(?!\d)"
_ADDRESS = r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.){1,30}[A-Za-z]{2,}"
_CARD = r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)"
_NUMBER = re.compile(
    r"(?<!\d)(?!(?:19|20)\d\d-\d\d-\d\d)[+(]?\d(?:[\s().\u2010-\u2015/-]{0,3}\d){6,}"
)
_AROUND = 2  # characters beside a number that its recogniser wants to see
_AT_ONCE = 200  # characters of a long row of numbers, which takes the square of its length
_LONGEST = 60  # of one number, with what is between its digits

_LABELS = {"EMAIL_ADDRESS": "EMAIL", "PHONE_NUMBER": "PHONE", "CREDIT_CARD": "CARD"}


class Redactor:
    """Replaces what it finds by what it is, as `<EMAIL>`."""

    def __init__(self) -> None:
        self._phones = PhoneRecognizer(supported_regions=REGIONS)
        self._others: Sequence[PatternRecognizer] = (
            _recogniser("EMAIL_ADDRESS", _ADDRESS),
            CreditCardRecognizer(patterns=[Pattern("card", _CARD, 0.5)]),
            _recogniser("KR_RRN", _RESIDENT),
        )

    def text(self, text: str) -> str:
        """The text without what identifies somebody."""
        if text.startswith("data:"):
            return DATA
        pieces, end = [], 0
        for start, stop, label in _apart(self._found(text)):
            pieces += [text[end:start], f"<{label}>"]
            end = stop
        return "".join([*pieces, text[end:]])

    def value(self, value: Any) -> Any:
        """The same of every text in a JSON value; the names of fields stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        for recogniser in self._others:
            for found in recogniser.analyze(text, recogniser.supported_entities):
                yield found.start, found.end, _LABELS.get(found.entity_type, found.entity_type)
        # Looking for phone numbers takes seconds in a long text, so only digits are looked at.
        for number in _NUMBER.finditer(text):
            end = number.end() + _AROUND
            for start in range(max(0, number.start() - _AROUND), end, _AT_ONCE - _LONGEST):
                piece = text[start : min(start + _AT_ONCE, end)]
                for found in self._phones.analyze(piece, ["PHONE_NUMBER"]):
                    yield start + found.start, start + found.end, "PHONE"
                if start + _AT_ONCE >= end:
                    break


def _recogniser(entity: str, pattern: str) -> PatternRecognizer:
    return PatternRecognizer(supported_entity=entity, patterns=[Pattern(entity, pattern, 0.9)])


def _apart(found: Iterator[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order and without overlaps: of two that share a character, both, as what begins first."""
    apart: list[tuple[int, int, str]] = []
    for start, stop, label in sorted(found, key=lambda each: (each[0], -each[1])):
        if apart and start < apart[-1][1]:
            first, last, kept = apart[-1]
            apart[-1] = (first, max(last, stop), kept)
        else:
            apart.append((start, stop, label))
    return apart
