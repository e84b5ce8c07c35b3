"""Finds phone numbers in a text, also where other numbers stand beside them.

phonenumbers knows which numbers there are. Where one ends and the next begins it does not: of
numbers that only blanks keep apart it sees one, which there is not, and lets all of them pass. So
every place where one may begin is looked at here, and every end that it may have from there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import phonenumbers

REGIONS: Final = ("KR", "US", "GB", "DE", "FR", "JP", "CN", "IN")
"""Whose phone numbers are known without a country code; with one, all are."""

_GAP = r"[ \t\u00a0\u2007\u202f()./\u2010-\u2015-]{1,3}"
_ALIKE: Final = str.maketrans(
    "\uff10\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19"
    "\u00b7\u2022\u2027\u30fb\uff0d\uff65\uff0b\uff08\uff09\u3000",
    "0123456789------+() ",
)
"""What Korean and Japanese keyboards write for digits and what stands between them."""
_FEWEST, _MOST_AT_HOME, _MOST = 9, 12, 15  # digits: E.164 allows 15, and no region here needs 13
# No fraction, nothing right behind a year that stands alone and no day before one.
_DATE = r"\d\d[ ./-]\d\d[ ./-](?:19|20)\d\d(?!\d)"
_YEAR = r"(?<![\d-])(?:19|20)\d\d[-/]"
_BEGINS = rf"(?<!\d)(?:(?<!\d\.)|(?=\d+-))(?<!{_YEAR})(?!{_DATE})"

_ABROAD = re.compile(rf"(?:\+[ (]?|(?<![\d.])00)(?=([1-9]\d*(?:{_GAP}\d+){{0,6}}))")
_AT_HOME = re.compile(rf"{_BEGINS}(?=(0 ?[1-9]\d*(?:{_GAP}\d{{2,}}){{0,5}}))")
_TRUNK = tuple(region for region in REGIONS if region != "US")
# Without a 0 in front only the groups tell a phone number from any other.
_OTHERS = tuple(
    (region, re.compile(rf"{_BEGINS}(?=({form})(?!\d))".replace("~", f"(?:{_GAP})?")))
    for region, form in (
        ("US", r"(?:1~)?[2-9]\d\d~[2-9]\d\d~\d{4}"),
        ("CN", r"1[3-9]\d~\d{4}~\d{4}"),
        ("IN", r"[6-9]\d{4}~\d{5}"),
        ("KR", r"82~0?10~\d{4}~\d{4}"),
    )
)
_DIGITS = re.compile(r"\d+")
_LETTER_BEFORE = re.compile(r"(?<!\\)[A-Za-z_]\Z")  # but a line's end may be written as \n
_LETTER = re.compile(r"[A-Za-z_]")


def phone_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Where each begins and ends; they may overlap.

    Args:
        text: of any length: the time that it takes grows with that, and no faster.
    """
    text = text.translate(_ALIKE)
    for start, end in _found(text):
        opened = text[start - 1 : start] == "(" and ")" in text[start:end]
        yield start - opened, end


def _found(text: str) -> Iterator[tuple[int, int]]:
    for found in _ABROAD.finditer(text):
        if (end := _longest(text, found, (None,), _MOST)) is not None:
            yield found.start(), end
    for found in _AT_HOME.finditer(text):
        if (end := _longest(text, found, _TRUNK, _MOST_AT_HOME)) is not None:
            yield found.start(), end
    for region, form in _OTHERS:
        for found in form.finditer(text):
            start, end = found.span(1)
            if not _in_a_word(text, start, end) and _exists(text[start:end], (region,)):
                yield start, end


def _longest(
    text: str, found: re.Match[str], regions: Sequence[str | None], most: int
) -> int | None:
    """The end of the longest number that begins there, if any does."""
    start, stop = found.span(1)
    ends, digits = [], 0
    for group in _DIGITS.finditer(text, start, stop):
        digits += group.end() - group.start()
        if digits > most:
            break
        if digits >= _FEWEST:
            ends.append(group.end())
    for end in reversed(ends):
        if not _in_a_word(text, start, end):
            number = text[start:end] if regions[0] else f"+{text[start:end]}"
            if _exists(number, regions):
                return end
    return None


def _in_a_word(text: str, start: int, end: int) -> bool:
    """Whether digits in one piece are part of a longer word, such as a hash."""
    if not text[start:end].isdecimal():
        return False
    before = _LETTER_BEFORE.search(text[max(0, start - 2) : start])
    return before is not None or _LETTER.match(text, end) is not None


def _exists(number: str, regions: Sequence[str | None]) -> bool:
    for region in regions:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False
