"""What a change of some keys makes of overrides that end at different times.

Seen ahead, what overrides a subject is a stair: one value until the first of them ends, then the
next, at last the one without an end. A change until a time changes every stair before it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

Value = Mapping[str, Any] | None


def layers(
    standing: Iterable[tuple[Value, float | None]], changes: Mapping[str, Any], until: float | None
) -> list[tuple[Value, float | None]]:
    """The overrides to write, in this order, so that the changes hold until a time.

    Args:
        standing: value and end of what is in force or will be, the oldest first.
        changes: keys with their new values; None takes a key out.
        until: seconds since the epoch; None has no end.
    """
    end = _end(until)
    stairs = _stairs(standing)
    below = next((value for value, ends in reversed(stairs) if ends >= end), None)
    changed = [(merged(below, changes), until)]
    for value, ends in stairs:
        if ends < end:
            changed.append((merged(value, changes), ends))
    return changed


def merged(value: Value, changes: Mapping[str, Any]) -> Value:
    """A value with some keys changed; None when nothing is left of it."""
    whole = dict(value or {})
    for key, new in changes.items():
        old = whole.pop(key, None)
        if isinstance(new, Mapping):
            inner = merged(old if isinstance(old, Mapping) else None, new)
            new = inner or None  # noqa: PLW2901
        if new is not None:
            whole[key] = new
    return whole or None


def _stairs(standing: Iterable[tuple[Value, float | None]]) -> list[tuple[Value, float]]:
    """Value and end of each stair, the last first: an older one shows only if it ends later."""
    stairs: list[tuple[Value, float]] = []
    for value, until in standing:
        ends = _end(until)
        stairs = [(v, e) for v, e in stairs if e > ends]
        stairs.append((value, ends))
    return stairs


def _end(until: float | None) -> float:
    return math.inf if until is None else until
