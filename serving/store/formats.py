"""How money, times, counts and foreign text are written in the terminal."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from rich import box
from rich.table import Table
from rich.text import Text

from cascade.audit import PICO

NONE = "·"

COLOURS = {
    "ok": "green",
    "accepted": "green",
    "degraded": "yellow",
    "rejected": "yellow",
    "cancelled": "dim",
    "error": "red",
    "backend_error": "red",
    "estimate_error": "red",
    "judge_error": "red",
    "invalid": "red",
}
_MILLION = 1_000_000
_HUNDREDS = 100 * _MILLION


def dollars(amount: Decimal | None) -> str:
    """Money with three digits that say something, and cents at least; unknown stays unknown."""
    if amount is None:
        return "unknown"
    places = max(2, 2 - amount.adjusted()) if amount else 2
    return f"${amount:,.{places}f}"


def pico_dollars(amount: int | None) -> str:
    """The same for the audit log's integers."""
    return dollars(None if amount is None else Decimal(amount) / PICO)


def duration(milliseconds: float | None) -> str:
    """A time with three digits at most: 3.1 ms, 812 ms, 1.83 s."""
    if milliseconds is None:
        return NONE
    if milliseconds < 9.95:  # noqa: PLR2004 - below it, a tenth is worth showing
        return f"{milliseconds:.1f} ms"
    if milliseconds < 999.5:  # noqa: PLR2004 - above it, seconds read better
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1e3:.2f} s"


def moment(seconds: float) -> str:
    """Seconds since the epoch as date and time, UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{int(seconds % 1 * 1000):03d}"


def tokens(number: int | None) -> str:
    """A count; None is not known."""
    return NONE if number is None else f"{number:,}"


def millions(number: int) -> str:
    """A count that may be large, short enough for a table of many columns: 8.6 M, 1,220 M."""
    if number < _MILLION:
        return tokens(number)
    return f"{number / _MILLION:,.{0 if number >= _HUNDREDS else 1}f} M"


def percent(part: float, whole: float) -> str:
    """A share of something; of nothing there is none."""
    return f"{part / whole:.1%}" if whole else NONE


def decimal(value: float | None) -> str:
    """A score, a probability, a feature."""
    if value is None:
        return "none"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"


def features(values: Mapping[str, float | None]) -> str:
    """Names and numbers on one line."""
    return ", ".join(f"{name} {decimal(value)}" for name, value in values.items())


def plain(text: str, style: str = "") -> Text:
    """Text as it is: no markup, and nothing that a terminal would obey."""
    return Text("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text), style=style)


def coloured(word: str) -> Text:
    """A status or an outcome."""
    return plain(word, COLOURS.get(word, ""))


def columns(*left: str, right: tuple[str, ...] = ()) -> Table:
    """A table of text columns, then of numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in left:
        table.add_column(name, overflow="fold", min_width=len(name))
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table
