"""A request's attempts as the page draws them: when each began, how long it took, and why it was.

Every number is one of the audit row's; nothing is estimated here but where on the line it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cascade.audit import AttemptRecord, AuditRecord

NARROWEST = 0.4
"""Per cent of the line that the shortest attempt takes, so that it can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One attempt.

    Attributes:
        left: where it begins, in per cent of the line.
        width: how long it is, in the same.
        first: where its first token came, in the same; None when none did.
        prompt_tokens: all of the prompt's, cached or not; None when not reported.
        error: by how many pico-dollars it cost more than was quoted; None when either is unknown.
    """

    attempt: AttemptRecord
    left: float
    width: float
    first: float | None
    prompt_tokens: int | None
    error: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """All attempts along one line.

    Attributes:
        line_ms: how long the line is: the request, or what went on after it.
        answer_ms: when the client had its answer.
        ticks: (place in per cent, milliseconds) of the line's marks.
        quoted_pico: of the attempts that were quoted; None when none was.
        paid_pico: what these cost; None when that is not known of one.
    """

    bars: Sequence[Bar]
    line_ms: float
    answer_ms: float
    ticks: Sequence[tuple[float, float]]
    quoted_pico: int | None
    paid_pico: int | None

    @property
    def answer(self) -> float:
        """Where on the line the client had its answer, in per cent."""
        return 100.0 * self.answer_ms / self.line_ms


def waterfall(record: AuditRecord) -> Waterfall:
    """Draw a request's attempts."""
    ends = [each.started_ms + each.duration_ms for each in record.attempts]
    line = max([record.duration_ms, *ends, 1e-3])
    quoted = [each for each in record.attempts if each.quoted_pico is not None]
    return Waterfall(
        bars=[_bar(each, line) for each in record.attempts],
        line_ms=line,
        answer_ms=record.duration_ms,
        ticks=[(100.0 * mark / line, mark) for mark in _marks(line)],
        quoted_pico=_total([each.quoted_pico for each in quoted]),
        paid_pico=_total([each.cost_pico for each in quoted]),
    )


def _bar(attempt: AttemptRecord, line: float) -> Bar:
    width = max(100.0 * attempt.duration_ms / line, NARROWEST)
    left = min(100.0 * attempt.started_ms / line, 100.0 - width)
    first = attempt.first_token_ms
    quoted, paid = attempt.quoted_pico, attempt.cost_pico
    return Bar(
        attempt=attempt,
        left=max(left, 0.0),
        width=width,
        first=None if first is None else 100.0 * (attempt.started_ms + first) / line,
        prompt_tokens=prompt_tokens(attempt),
        error=None if quoted is None or paid is None else paid - quoted,
    )


def prompt_tokens(attempt: AttemptRecord) -> int | None:
    """Tokens of an attempt's prompt, cached or not; None when it reported none."""
    if attempt.input_tokens is None:
        return None
    cached = (attempt.cache_read_tokens or 0) + (attempt.cache_write_tokens or 0)
    return attempt.input_tokens + cached


def _marks(line: float) -> list[float]:
    """Four or so round times along a line, from 0 on."""
    step = 1e-3
    while line / step > 5:  # noqa: PLR2004 - marks that a line has room for
        step *= 2.5 if f"{step:e}".startswith("2") else 2.0
    return [i * step for i in range(int(line / step) + 1)]


def _total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
