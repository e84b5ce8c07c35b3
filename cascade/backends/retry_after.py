"""Reads when a server wants to be asked again, in the three forms in which servers say it."""

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime


def seconds_to_wait(
    headers: Mapping[str, str], now: Callable[[], float] = time.time
) -> float | None:
    """Seconds of `retry-after-ms`, else of `Retry-After`, a number or a date; None without either.

    Args:
        headers: of the response; looked up by lower-case names.
        now: Unix time, which a date is held against; a date that is past means at once.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) / scale
        except (TypeError, ValueError):
            continue
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, at.timestamp() - now())
