"""What a request adds to the sums of its hour: the one place that says what counts as what.

The log is asked for sums far more often than for rows, and a sum over a million rows takes seconds.
So each request is added up once, when its rows are written; a day is the sum of its hours. Money is
whole pico-dollars and scores are whole millionths, so that what was added can be taken off again to
the last digit: a later word replaces an earlier one.

A time falls into a bin that is 4 % wide, so a quantile is told within 2 %.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, Table

from cascade.types import Kind, Outcome
from serving.store.tables import call_sums, judge_sums, request_sums, time_sums

Row = Mapping[str, Any] | RowMapping

HOUR, DAY = 3600, 86400
SPANS = (HOUR, DAY)
TABLES = (request_sums, call_sums, judge_sums, time_sums)
MICRO = 1_000_000

SCORE_BINS = 20
SILENT = -1
"""The bin of answers that a judge was asked about and said nothing of."""

_WIDTH = math.log(1.04)
_SHORTEST_MS = 1e-3


def keys_of(table: Table) -> list[str]:
    """What a table of sums tells apart, besides span and time."""
    return [column.name for column in table.primary_key if column.name not in {"span", "at"}]


def counters_of(table: Table) -> list[str]:
    """What a table of sums adds up."""
    return [column.name for column in table.columns if not column.primary_key]


class Sums:
    """Sums by table and by (hour, *keys); an hour begins at that many seconds since the epoch."""

    def __init__(self) -> None:
        self.of: dict[Table, dict[tuple[Any, ...], list[int]]] = {table: {} for table in TABLES}

    def add(self, table: Table, key: tuple[Any, ...], counters: Iterable[int]) -> None:
        """Add to what is there under a key."""
        there = self.of[table].get(key)
        if there is None:
            self.of[table][key] = list(counters)
        else:
            for place, number in enumerate(counters):
                there[place] += number

    def rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """What to add to the table, by the hour and by the day, in the order of its key."""
        spans: dict[tuple[Any, ...], list[int]] = {}
        for (hour, *rest), counters in self.of[table].items():
            if not any(counters):
                continue
            for span in SPANS:
                key = (span, hour // span * span, *rest)
                spans[key] = [a + b for a, b in zip(spans.get(key, _NONE), counters, strict=False)]
        names = ["span", "at", *keys_of(table), *counters_of(table)]
        for key in sorted(spans):
            yield dict(zip(names, (*key, *spans[key]), strict=True))


_NONE = [0] * 32


def add_request(sums: Sums, request: Row, calls: Sequence[Row], said: Sequence[Row]) -> None:
    """A request with its calls, in order, and what was said of it until now."""
    hour = hour_of(request["created_at"])
    cost, baseline = request["cost_pico"], request["baseline_pico"]
    compared = cost is not None and baseline is not None
    key = (hour, *_whose(request), request["policy"], request["tier"] or "", request["status"])
    sums.add(
        request_sums,
        key,
        (
            *(1, request["answers"] > 1, cost or 0, cost is None),
            *(compared, cost if compared else 0, baseline if compared else 0),
            *_scored(said),
        ),
    )
    way = (request["experiment"] or "", request["arm"] or "")
    add_calls(sums, request, calls)
    for measure in ("duration", "overhead"):
        _add_time(sums, (hour, *way, request["tier"] or ""), measure, request[f"{measure}_ms"])
    for call in calls:
        if call["kind"] == Kind.ANSWER:
            _add_time(sums, (hour, *way, call["tier"]), "first_token", call["first_token_ms"])
    _add_judged(sums, request, calls, said)


def add_calls(sums: Sums, request: Row, calls: Iterable[Row]) -> None:
    """Calls of a request, also such as came after it."""
    hour = hour_of(request["created_at"])
    for call in calls:
        kind = call["kind"]
        if kind == Kind.SHADOW and call["judge"] is not None:
            kind = Kind.JUDGE.value
        cost, quoted = call["cost_pico"], call["quoted_pico"]
        compared = cost is not None and quoted is not None
        fresh, read, written = (call[name] for name in _PROMPT)
        sums.add(
            call_sums,
            (hour, *_whose(request), call["tier"], kind),
            (
                *(1, call["error_type"] is not None, fresh or 0, read or 0, written or 0),
                *(call["output_tokens"] or 0, call["reasoning_tokens"] or 0),
                0 if read is None else (fresh or 0) + read + (written or 0),
                *(cost or 0, cost is None, call["cold_premium_pico"] or 0),
                *(compared, quoted if compared else 0, cost if compared else 0),
            ),
        )


def add_said(
    sums: Sums, request: Row, calls: Sequence[Row], before: Sequence[Row], after: Sequence[Row]
) -> None:
    """What was said of a request is no longer `before` but `after`."""
    old, new = _scored(before), _scored(after)
    hour = hour_of(request["created_at"])
    key = (hour, *_whose(request), request["policy"], request["tier"] or "", request["status"])
    changed = [b - a for a, b in zip(old, new, strict=True)]
    sums.add(request_sums, key, (0, 0, 0, 0, 0, 0, 0, *changed))
    answer = _served(request, calls)
    if answer is not None and answer["judge"] is not None and _asked(answer, calls):
        was, now = _labels(answer, before), _labels(answer, after)
        sums.add(
            judge_sums,
            (hour, answer["judge"], answer["tier"], score_bin(answer["score"])),
            (0, 0, 0, *(b - a for a, b in zip(was, now, strict=True))),
        )


def hour_of(seconds: float) -> int:
    """When the hour of a time began."""
    return int(seconds // HOUR) * HOUR


def score_bin(score: float | None) -> int:
    """The bin of a judge's score."""
    return SILENT if score is None else min(SCORE_BINS - 1, int(score * SCORE_BINS))


def time_bin(milliseconds: float) -> int:
    """The bin of a time."""
    return math.ceil(math.log(max(milliseconds, _SHORTEST_MS)) / _WIDTH)


def time_of(number: int) -> float:
    """The milliseconds that are at most 2 % away from any time in a bin."""
    upper = math.exp(number * _WIDTH)
    return 2 * upper / (1 + math.exp(_WIDTH))


def _add_time(sums: Sums, key: tuple[Any, ...], measure: str, milliseconds: float | None) -> None:
    if milliseconds is not None:
        sums.add(time_sums, (*key, measure, time_bin(milliseconds)), (1,))


def _add_judged(sums: Sums, request: Row, calls: Sequence[Row], said: Sequence[Row]) -> None:
    served = _served(request, calls)
    for call in calls:
        answered = call["kind"] == Kind.ANSWER and call["error_type"] is None
        if not answered or call["judge"] is None or not _asked(call, calls):
            continue
        score = call["score"]
        labels = _labels(call, said) if call is served else (0, 0, 0)
        sums.add(
            judge_sums,
            (hour_of(request["created_at"]), call["judge"], call["tier"], score_bin(score)),
            (1, call["outcome"] == Outcome.ACCEPTED, round((score or 0.0) * MICRO), *labels),
        )


def _asked(answer: Row, calls: Sequence[Row]) -> bool:
    """Whether the judge looked at the whole answer; of one that was released early it may not."""
    if answer["score"] is not None or answer["verdict_reason"] is not None:
        return True
    for call in calls:
        if call["index"] <= answer["index"]:
            continue
        if call["kind"] == Kind.ANSWER:
            return False
        if call["kind"] == Kind.JUDGE and call["judge"] == answer["judge"]:
            return True
    return False


def _served(request: Row, calls: Sequence[Row]) -> Row | None:
    """The answer that the client got."""
    whole = [
        call
        for call in calls
        if call["kind"] == Kind.ANSWER
        and call["error_type"] is None
        and call["tier"] == request["tier"]
    ]
    accepted = [call for call in whole if call["outcome"] == Outcome.ACCEPTED]
    found = accepted or whole
    return found[-1] if found else None


def _scored(said: Sequence[Row]) -> tuple[int, int, int]:
    scores = _scores(said)
    return bool(scores), len(scores), sum(scores)


def _labels(answer: Row, said: Sequence[Row]) -> tuple[int, int, int]:
    scores = _scores(said)
    if not scores or answer["score"] is None:
        return 0, 0, 0
    label = round(sum(scores) / len(scores))
    accepted = answer["outcome"] == Outcome.ACCEPTED
    return 1, label, accepted != (label >= MICRO // 2)


def _scores(said: Sequence[Row]) -> list[int]:
    return [round(each["score"] * MICRO) for each in said if each["score"] is not None]


def _whose(request: Row) -> tuple[str, str, str]:
    return request["tenant"], request["experiment"] or "", request["arm"] or ""


_PROMPT = ("input_tokens", "cache_read_tokens", "cache_write_tokens")
