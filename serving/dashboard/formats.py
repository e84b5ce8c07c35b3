"""How numbers, money and times are written on the page; what is not known is a dash, never 0."""

from datetime import UTC, datetime
from decimal import Decimal

from markupsafe import Markup, escape

from cascade.audit import PICO
from serving.store.formats import dollars, duration

NONE = "\u2013"

LAST_SECOND = datetime(9999, 12, 31, tzinfo=UTC).timestamp()

_THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e4, "k"))


def money(amount: Decimal | None) -> str:
    """Dollars with three digits that say something, and cents at least; a minus before the sign."""
    if amount is None:
        return NONE
    return f"-{dollars(-amount)}" if amount < 0 else dollars(amount)


def pico_money(amount: int | None) -> str:
    """The same of the log's pico-dollars."""
    return NONE if amount is None else money(Decimal(amount) / PICO)


def count(number: float | None) -> str:
    """A count in full: 12,345."""
    return NONE if number is None else f"{number:,.0f}"


def short(number: float | None) -> str:
    """A count in four characters or so: 12.3k, 4.56M; below ten thousand in full."""
    if number is None:
        return NONE
    for size, letter in _THOUSANDS:
        if number >= size:
            scale = 1e3 if letter == "k" else size
            return f"{number / scale:.3g}{letter}" if number < scale * 1e3 else f"{number:,.0f}"
    return f"{number:,.0f}"


def share(value: float | None) -> str:
    """A share as a percentage."""
    return NONE if value is None else f"{value:.1%}"


def score(value: float | None) -> str:
    """A score or a probability, to three places."""
    return NONE if value is None else f"{value:.3f}"


def milliseconds(value: float | None) -> str:
    """A time with about three digits."""
    return NONE if value is None else duration(value)


def instant(seconds: float | None) -> str:
    """Seconds since the epoch as a machine reads them; the page shows them in the viewer's zone."""
    if seconds is None:
        return ""
    return f"{_moment(seconds):%Y-%m-%dT%H:%M:%S}.{int(seconds % 1 * 1e3):03d}Z"


def clock(seconds: float | None) -> str:
    """The same for people, UTC, for where no script says it in their zone."""
    if seconds is None:
        return NONE
    return f"{_moment(seconds):%Y-%m-%d %H:%M} UTC"


def usd(amount: float | None) -> str:
    """The same as `money`, of a float that comes from a mean."""
    return NONE if amount is None else money(Decimal(f"{amount:.12f}"))


def coded(text: str) -> Markup:
    """A sentence of the service's own, what stands between backticks shown as code."""
    plain, *rest = text.split("`")
    if len(rest) % 2:
        return escape(text)
    pieces = [escape(plain)]
    for code, after in zip(rest[::2], rest[1::2], strict=True):
        pieces.append(Markup("<code>{}</code>{}").format(code, after))
    return Markup("").join(pieces)


def _moment(seconds: float) -> datetime:
    """A time; of one before 1970 or after the year 9999 the nearest that is not."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), LAST_SECOND), UTC)
