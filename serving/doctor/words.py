"""Gaps between calls, in words."""

_FEW = 9.95
_MINUTE, _HOUR = 60.0, 3600.0


def gap(seconds: float) -> str:
    """Two digits at least, and no more than say something: 0.5 s, 40 s, 5.3 min, 11 min, 2.5 h."""
    if seconds < 2 * _MINUTE:
        return _number(seconds) + " s"
    if seconds < _HOUR:
        return _number(seconds / _MINUTE) + " min"
    return _number(seconds / _HOUR) + " h"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < _FEW else f"{value:.0f}"
