"""Takes out of a prompt what changes from request to request and means nothing: dates and names.

It is there to explain why a prompt is no longer the one that a cache knows, so it knows the usual
written forms and leaves the rest. What only looks like a date does no harm: where it stays the
same, it is the same without it.

It reads bytes, and every repetition is bounded or gives nothing back, so that its time is linear in
the text's length whatever that is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

DATE: Final = b"\xf8"
"""What stands for a date or a time; no UTF-8 text has that byte."""

IDENTIFIER: Final = b"\xf9"
"""What stands for an identifier or a long number."""

_APART = "(?![0-9A-Za-z])"
_SPACE = "[ \u202f]"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = "[0-9]{1,2}(?:st|nd|rd|th)?"
_YEAR = "(?:19|20)[0-9]{2}"
_ZONE = (
    f"(?: ?(?:Z|(?:UTC|GMT)(?:[+-][0-9]{{1,4}}(?::[0-9]{{2}})?)?|[+-][0-9]{{2}}:?[0-9]{{2}}"
    f"|[CEMP][DS]T|[IJK]ST|BST|CES?T){_APART})?"
)
_TIME = (
    "[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
    f"(?:(?: |\u202f)?[AaPp]\\.?[Mm]{_APART})?{_ZONE}(?: {_YEAR}{_APART})?"
)
_FROM_A_DIGIT = (
    f"[0-9]{{4}}[-/.][0-9]{{1,2}}[-/.][0-9]{{1,2}}(?![0-9])(?:[T ]{_TIME})?",
    "[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}(?:[0-9]{2})?(?![0-9])",
    "[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4}(?![0-9])",
    f"{_YEAR}(?:0[1-9]|1[0-2])[0-3][0-9](?:T[0-9]{{4,6}}Z?)?{_APART}",
    f"{_DAY}(?: of)?[ -]{_MONTH}(?:[,.]?[ -][0-9]{{4}})?{_APART}",
    _TIME,
    f"[0-9]{{1,2}} ?[AaPp][Mm]{_APART}",
    f"1[0-9]{{9}}(?:[0-9]{{3}})?(?:\\.[0-9]{{1,9}})?{_APART}",  # seconds or milliseconds since 1970
    "[0-9]{2,4}(?:년|年)(?: ?[0-9]{1,2}(?:월|月)(?: ?[0-9]{1,2}(?:일|日))?)?",
    "[0-9]{1,2}(?:월|月) ?[0-9]{1,2}(?:일|日)",
    "[0-9]{1,2}시(?: ?[0-9]{1,2}분(?: ?[0-9]{1,2}초)?)?",
)
_FROM_A_LETTER = (
    f"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day{_APART}",
    f"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:,(?= ?[0-9])|(?= (?:{_MONTH} )?[0-9]{{1,2}}{_APART}))",
    f"{_MONTH}\\.? (?:{_DAY}(?:,? [0-9]{{4}})?|[0-9]{{4}}){_APART}",
)
_IN_KOREAN = "(?:월|화|수|목|금|토|일)요일|오(?:전|후)(?= ?[0-9])"
_UUID = f"[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}{_APART}"
_DATED = f"[A-Za-z_-]{{0,40}}{_YEAR}-?[01][0-9]-?[0-3][0-9](?:[T_-]|{_APART})"
_IDENTIFIERS = (
    f"(?=[A-Za-z_-]{{0,40}}[0-9])(?!{_DATED})[0-9A-Za-z_-]{{16,}}+",
    "[A-Za-z]{2,12}[_-](?=[A-Za-z]{0,15}[0-9])[0-9A-Za-z]{8,15}+(?![0-9A-Za-z_-])",
    "(?=[A-Fa-f]{0,12}[0-9])[0-9A-Fa-f]{12,15}+(?![0-9A-Za-z_-])",
    f"[0-9]{{6,}}+{_APART}",
)
# Each of its branches begins with what fails at once for nearly every byte.
_FORMS: Final = re.compile(
    (
        f"(?=[0-9A-Fa-f]{{8}}-)(?<![0-9A-Za-z_-])(?P<uuid>{_UUID})"
        f"|(?P<date>(?=[0-9])(?<![0-9])(?:{'|'.join(_FROM_A_DIGIT)})"
        f"|(?=[ADFJMNOSTW])(?<![0-9A-Za-z])(?:{'|'.join(_FROM_A_LETTER)})"
        f"|{_IN_KOREAN})"
        f"|(?=[0-9A-Za-z])(?<![0-9A-Za-z_-])(?:{'|'.join(_IDENTIFIERS)})"
    ).encode()
)


_AT_ONCE: Final = 100
"""Bytes that are read on at least, as lines may be short."""

# A line without any of these has none of the forms, and most lines have none.
_TRACES: Final = re.compile("[0-9]|day|요일".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A text with its dates, its identifiers or both taken out."""

    dates: bytes
    ids: bytes
    both: bytes


def masked(text: bytes) -> Masked:
    """The text as it is without dates and times, without identifiers, and without either.

    Dates are those in ISO 8601, RFC 2822 and the ways that are usual in English, Korean and
    Japanese, with or without a time; times, weekdays, and seconds or milliseconds since 1970.
    Identifiers are UUIDs, hexadecimal numbers of 12 digits or more, names of 16 characters or more
    with a digit in them (ULIDs, base64), names like req_7f3a9c21, and numbers of 6 digits or more.
    """
    dates: list[bytes] = []
    ids: list[bytes] = []
    both: list[bytes] = []
    end = 0
    for found in _found(text):
        before, what = text[end : found.start()], found.group()
        is_date = found.lastgroup == "date"
        dates += (before, DATE if is_date else what)
        ids += (before, what if is_date else IDENTIFIER)
        both += (before, DATE if is_date else IDENTIFIER)
        end = found.end()
    if not end:
        return Masked(dates=text, ids=text, both=text)
    return Masked(
        **{
            name: b"".join([*pieces, text[end:]])
            for name, pieces in (("dates", dates), ("ids", ids), ("both", both))
        }
    )


def _found(text: bytes) -> Iterator[re.Match[bytes]]:
    trace = _TRACES.search(text)
    while trace:
        start = text.rfind(b"\n", 0, trace.start()) + 1
        end = text.find(b"\n", trace.end() + _AT_ONCE)
        end = len(text) if end < 0 else end
        yield from _FORMS.finditer(text, start, end)
        trace = _TRACES.search(text, end)
