"""Takes out of a text what identifies a person: addresses, phone, card and resident numbers.

The recognisers are Presidio's, without a language model: what they find has a form. Some of their
patterns end at a word's boundary, and Korean particles follow a number or an address without one,
so those get patterns of their own here. Names and postal addresses have no form and stay.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from presidio_analyzer import Pattern, PatternRecognizer
from presidio_analyzer.predefined_recognizers import CreditCardRecognizer

from serving.store.phones import phone_numbers

DATA = "<DATA>"
"""What is left of an image or a file that is part of a message."""
PIECE, OVERLAP = 5_000, 600
"""Characters of a long text that are looked at together, and of two neighbours that both see."""

# A resident or foreigner number: birth date, then seven digits of which the first is 1 to 8.
_RESIDENT = r"(?<!\d)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\s?[-\u2013]?\s?[1-8]\d{6}(?!\d)"
_ADDRESS = r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.){1,30}[A-Za-z]{2,}"
_CARD = r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)"
# That takes other digits beside a card's for its own: in one piece or as printed, it is whole.
_GROUPS = r"[2-6]\d{3}([ -])\d{4}\2\d{4}\2\d{4}|3[47]\d\d[ -]\d{6}[ -]\d{5}"
_WHOLE_CARD = re.compile(rf"(?<!\d)(?=((?:\d{{13,19}}|{_GROUPS})(?!\d)))")

_LABELS = {"EMAIL_ADDRESS": "EMAIL", "CREDIT_CARD": "CARD"}


class Redactor:
    """Replaces what it finds by what it is, as `<EMAIL>`."""

    def __init__(self) -> None:
        self._cards = CreditCardRecognizer(patterns=[Pattern("card", _CARD, 0.5)])
        self._others: Sequence[PatternRecognizer] = (
            _recogniser("EMAIL_ADDRESS", _ADDRESS),
            self._cards,
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
        for begin, end in _pieces(len(text)):
            for start, stop, label in self._found_in(text[begin:end]):
                cut = (begin and not start) or (end < len(text) and begin + stop == end)
                # What is cut at a border may look like what it is not. The neighbour sees it whole.
                if not cut or stop - start > OVERLAP // 2:
                    yield begin + start, begin + stop, label

    def _found_in(self, piece: str) -> Iterator[tuple[int, int, str]]:
        for recogniser in self._others:
            for found in recogniser.analyze(piece, recogniser.supported_entities):
                yield found.start, found.end, _LABELS.get(found.entity_type, found.entity_type)
        for whole in _WHOLE_CARD.finditer(piece):
            if self._cards.validate_result(whole[1]):
                yield *whole.span(1), "CARD"
        for start, stop in phone_numbers(piece):
            yield start, stop, "PHONE"


def _pieces(length: int) -> Iterator[tuple[int, int]]:
    """Where each piece begins and ends.

    What Presidio does with its findings takes the square of their number, so a long text is looked
    at piece by piece.
    """
    for begin in range(0, max(1, length - OVERLAP), PIECE - OVERLAP):
        yield begin, min(length, begin + PIECE)


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
