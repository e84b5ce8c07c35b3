"""What the log comes to over time, and how far its judges can be believed, for a page.

All of it is read from the sums by whole hours, of a long range by whole days, so a range takes in
those that it cuts. A day is a day in UTC.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Engine, Table

from cascade.types import Kind
from serving.store.ranges import (
    Range,
    Summed,
    Times,
    read,
    read_steps,
    read_time_steps,
    read_times,
    waiting,
)
from serving.store.stats import (
    ArmUse,
    Quantiles,
    TierUse,
    arms_of,
    dollars,
    of_clients,
    quantiles_of,
    requests_by,
    tiers_of,
    total,
    totals_of,
)
from serving.store.sums import DAY, HOUR, MICRO, SCORE_BINS, SILENT, keys_of
from serving.store.tables import call_sums, judge_sums, request_sums

HOURLY_SECONDS = 3 * DAY
"""A range no longer than that is shown by the hour, a longer one by the day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Only requests with these values; None is any. Times are not told apart by tenant."""

    tenant: str | None = None
    experiment: str | None = None
    arm: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of some requests; dollars and tokens are those of their calls.

    Attributes:
        dollars: of the requests whose cost is known, calls that came later left out.
        unknown_cost: requests whose cost is not.
        compared: requests of which both the cost and what the dearest tier alone would have cost
            are known.
        baseline: what the dearest tier alone would have cost for those.
        saved: that, less what they did cost.
        shadow_dollars: of calls that were made in the background.
        cold_premium: what was paid because prompts were not warm.
        scored: requests that got a score from their tenant.
        mean_score: of these scores; None when there are none.
        cached_share: of the prompt tokens of calls that said how many were read from a cache; None
            when none did.
    """

    requests: int
    escalated: int
    degraded: int
    failed: int
    dollars: Decimal
    unknown_cost: int
    compared: int
    baseline: Decimal
    saved: Decimal
    shadow_dollars: Decimal
    cold_premium: Decimal
    scored: int
    mean_score: float | None
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cached_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One hour or day.

    Attributes:
        at: when it began, seconds since the epoch.
        answered: requests by the tier that answered them.
        first_token: of each call for an answer; None when there was none, or of one tenant.
    """

    at: int
    totals: Totals
    answered: Mapping[str, int]
    first_token: Quantiles | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A range of the log.

    Attributes:
        series: by hour or day, the earliest first; those without requests are left out.
        step_seconds: 3600 or 86400.
        uncounted: requests of an older version that are in none of these numbers yet.
    """

    totals: Totals
    series: Sequence[Point]
    step_seconds: int
    tiers: Sequence[TierUse]
    statuses: Mapping[str, int]
    arms: Sequence[ArmUse]
    duration: Quantiles | None
    overhead: Quantiles | None
    first_token: Quantiles | None
    uncounted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Answers whose score lies from `low` to below `high`.

    Attributes:
        labelled: those of them that the client got and said something of.
        mean_score: of all of them, as the judge has it.
        mean_label: of the labelled, as the feedback has it.
    """

    low: float
    high: float
    answers: int
    labelled: int
    mean_score: float | None
    mean_label: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReport:
    """What one judge said of one tier's answers, and what came of it.

    Attributes:
        answers: answers it was asked about.
        silent: of these, answers it failed on or could not tell about.
        labelled: answers of a scored verdict that feedback says something of.
        disagreed: of these, accepted ones with a label below one half, and others above.
        bins: of the scores, from 0 to 1; those without answers are left out.
    """

    judge: str
    tier: str
    answers: int
    accepted: int
    silent: int
    mean_score: float | None
    labelled: int
    disagreed: int
    bins: Sequence[Bin]


def overview(
    engine: Engine,
    since: float | None = None,
    until: float | None = None,
    *,
    only: Only | None = None,
) -> Overview:
    """The log from `since` on and before `until`, in seconds since the epoch; None is open.

    Args:
        engine: from `engine_for`.
        since: the hour, or the day, that it lies in is taken as a whole.
        until: likewise.
        only: of these requests.
    """
    span, step = _whole_steps(since, until)
    where = {name: value for name, value in asdict(only or Only()).items() if value is not None}
    with engine.connect() as connection:

        def steps(table: Table, by: Sequence[str]) -> list[Summed]:
            return read_steps(connection, table, span, step=step, by=by, only=where)

        asked = steps(request_sums, ("policy", "experiment", "arm", "tier", "status"))
        called = steps(call_sums, ("tier", "kind"))
        times, first_tokens = _times(connection, span, step, where)
        left = waiting(connection)
    return Overview(
        totals=_totals(asked, called),
        series=list(_series(asked, called, first_tokens)),
        step_seconds=step,
        tiers=tiers_of(asked, called),
        statuses=requests_by(of_clients(asked), "status"),
        arms=arms_of(asked),
        duration=quantiles_of(times["duration"]),
        overhead=quantiles_of(times["overhead"]),
        first_token=quantiles_of(times["first_token"]),
        uncounted=left,
    )


def judges(
    engine: Engine, since: float | None = None, until: float | None = None
) -> list[JudgeReport]:
    """The judges of a range, taken in whole hours, by judge and tier."""
    span = Range.of(since, until).widened(HOUR)
    with engine.connect() as connection:
        judged = read(connection, judge_sums, span, keys_of(judge_sums))
    by: dict[tuple[str, str], list[Summed]] = defaultdict(list)
    for each in judged:
        by[each.key["judge"], each.key["tier"]].append(each)
    return [_report(judge, tier, bins) for (judge, tier), bins in sorted(by.items())]


def _report(judge: str, tier: str, bins: Sequence[Summed]) -> JudgeReport:
    of = total(bins)
    silent = sum(each.of["answers"] for each in bins if each.key["bin"] == SILENT)
    scored = of["answers"] - silent
    ordered = sorted(bins, key=lambda each: int(each.key["bin"]))
    return JudgeReport(
        judge=judge,
        tier=tier,
        **{name: of[name] for name in ("answers", "accepted", "labelled", "disagreed")},
        silent=silent,
        mean_score=_mean(of["score_micro"], scored),
        bins=[_bin(each) for each in ordered if each.key["bin"] != SILENT and each.of["answers"]],
    )


def _bin(each: Summed) -> Bin:
    place, of = each.key["bin"], each.of
    return Bin(
        low=place / SCORE_BINS,
        high=(place + 1) / SCORE_BINS,
        answers=of["answers"],
        labelled=of["labelled"],
        mean_score=_mean(of["score_micro"], of["answers"]),
        mean_label=_mean(of["label_micro"], of["labelled"]),
    )


def _times(
    connection: Connection, span: Range, step: int, where: Mapping[str, str]
) -> tuple[Times, Mapping[int, Counter[int]]]:
    """All times, and those to the first token by step; of one tenant they are not known."""
    if "tenant" in where:
        return defaultdict(Counter), {}
    return (
        read_times(connection, span, where),
        read_time_steps(connection, span, "first_token", step=step, only=where),
    )


def _series(
    asked: Sequence[Summed], called: Sequence[Summed], timed: Mapping[int, Counter[int]]
) -> Iterable[Point]:
    by_step: dict[int, tuple[list[Summed], list[Summed]]] = {}
    for kind, sums in enumerate((asked, called)):
        for each in sums:
            by_step.setdefault(each.key["at"], ([], []))[kind].append(each)
    for at in sorted(by_step):
        those, calls = by_step[at]
        yield Point(
            at=at,
            totals=_totals(those, calls),
            answered=requests_by(those, "tier"),
            first_token=quantiles_of(timed.get(at, Counter())),
        )


def _totals(asked: Sequence[Summed], called: Sequence[Summed]) -> Totals:
    statuses = requests_by(of_clients(asked), "status")
    of = total(each for each in called if each.key["kind"] != Kind.JUDGE)
    tokens: dict[str, Any] = {name: of[name] for name in _TOKENS}
    shadow = total(each for each in called if each.key["kind"] == Kind.SHADOW)
    return Totals(
        **totals_of(asked),
        degraded=statuses.get("degraded", 0),
        failed=statuses.get("error", 0),
        shadow_dollars=dollars(shadow["cost_pico"]),
        cold_premium=dollars(of["cold_premium_pico"]),
        **tokens,
        cached_share=_share(of["cache_read_tokens"], of["cache_reported"]),
    )


def _whole_steps(since: float | None, until: float | None) -> tuple[Range, int]:
    """The range by whole hours, or by whole days when it is long."""
    span = Range.of(since, until)
    step = HOUR if min(span.until, time.time()) - span.since <= HOURLY_SECONDS else DAY
    return span.widened(step), step


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(micro: int, number: int) -> float | None:
    return micro / MICRO / number if number else None


_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
