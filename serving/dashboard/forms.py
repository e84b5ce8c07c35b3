"""Reads the fields of forms."""

import math
import time

from cascade.errors import RequestError
from serving.overrides.store import LONGEST_DAYS, LONGEST_SECONDS

MINUTE = 60.0
MOST_MINUTES = int(LONGEST_SECONDS / MINUTE)


def storable(text: str) -> str:
    """A text as the log has it: PostgreSQL takes no NUL."""
    return text.replace("\0", "\ufffd")


def number(text: str, field: str) -> float | None:
    """A number; None for an empty field.

    Raises:
        RequestError: it is none.
    """
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RequestError(f"{field}: {text!r} is not a number", param=field)
    return value


def until(minutes: str) -> float | None:
    """The time so many minutes from now, in seconds since the epoch; None for an empty field.

    Raises:
        RequestError: it is no number, or not one from more than 0 to 30 days.
    """
    length = number(minutes, "minutes")
    if length is not None and not 0 < length <= MOST_MINUTES:
        raise RequestError(
            f"minutes: more than 0, and at most {MOST_MINUTES:,}, which are {LONGEST_DAYS} days; "
            "leave it out for no end",
            param="minutes",
        )
    return None if length is None else time.time() + length * MINUTE
