"""Adds the audit log up: what was asked, who answered, what it cost and how long it took.

Every question is one aggregate that SQLite and PostgreSQL answer alike. Quantiles are nearest-rank:
the smallest value that at least that share of the values does not exceed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Subquery,
    case,
    func,
    select,
)

from cascade.audit import PICO
from cascade.types import Kind, Outcome
from serving.store.tables import attempts, feedback, requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Milliseconds that half, 95 % and 99 % of the values do not exceed."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmUse:
    """What one way to answer did: an arm of an experiment, or a policy asked for by name.

    Attributes:
        escalated: requests that asked more than one model for the answer.
        dollars: of the requests whose cost is known.
        unknown_cost: requests whose cost is not.
    """

    policy: str
    experiment: str | None
    arm: str | None
    requests: int
    escalated: int
    dollars: Decimal
    unknown_cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUse:
    """What one tier was called for, shadow and sample calls included.

    Attributes:
        answered: requests whose answer is this tier's.
        failed: calls that ended in an error.
        cache_reported: prompt tokens of the calls that said how many were read from a cache.
    """

    tier: str
    answered: int
    calls: int
    failed: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cache_reported: int
    dollars: Decimal
    unknown_cost: int

    @property
    def cached_share(self) -> float | None:
        """Share of prompt tokens read from a cache; None when no call reported it."""
        return self.cache_read_tokens / self.cache_reported if self.cache_reported else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """What one judge said of one tier's answers.

    Attributes:
        answers: answers it was asked about.
        silent: of these, answers it failed on or could not tell about.
        mean_score: of the answers it scored; None when it scored none.
    """

    judge: str
    tier: str
    answers: int
    accepted: int
    silent: int
    mean_score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The audit log between two times, added up.

    Attributes:
        first_at: when the first request began, seconds since the epoch; None when there is none.
        escalated: requests that asked more than one model for the answer.
        dollars: of the requests whose cost is known.
        unknown_cost: requests whose cost is not.
        compared: requests of which both the cost and what the dearest tier alone would have cost
            are known.
        baseline: what the dearest tier alone would have cost for those.
        saved: that, less what they did cost.
        scored: requests that got a score from their tenant.
        mean_score: of these scores; None when there are none.
        overhead: time of a request that was not spent waiting for models.
        first_token: of each call for an answer, from its start.
    """

    requests: int
    first_at: float | None
    last_at: float | None
    escalated: int
    dollars: Decimal
    unknown_cost: int
    compared: int
    baseline: Decimal
    saved: Decimal
    scored: int
    mean_score: float | None
    statuses: dict[str, int]
    arms: Sequence[ArmUse]
    tiers: Sequence[TierUse]
    judges: Sequence[JudgeUse]
    duration: Quantiles | None
    overhead: Quantiles | None
    first_token: Quantiles | None


def stats(engine: Engine, since: float | None = None, until: float | None = None) -> Stats:
    """Add up the requests that began at `since` or later and before `until`, in epoch seconds."""
    within = _within(since, until)
    asked = select(requests).where(*within).subquery()
    called = (
        select(attempts)
        .join(requests, requests.c.id == attempts.c.request_id)
        .where(*within)
        .subquery()
    )
    answering = called.c.kind == Kind.ANSWER.value
    with engine.connect() as connection:
        return Stats(
            **_totals(connection, asked),
            **_feedback(connection, asked),
            statuses=_counts(connection, asked.c.status),
            arms=_arms(connection, asked),
            tiers=_tiers(connection, asked, called),
            judges=_judges(connection, select(called).where(answering).subquery()),
            duration=_quantiles(connection, asked.c.duration_ms),
            overhead=_quantiles(connection, asked.c.overhead_ms),
            first_token=_quantiles(connection, called.c.first_token_ms, answering),
        )


def _within(since: float | None, until: float | None) -> list[ColumnElement[bool]]:
    bounds = []
    if since is not None:
        bounds.append(requests.c.created_at >= since)
    if until is not None:
        bounds.append(requests.c.created_at < until)
    return bounds


def _totals(connection: Connection, asked: Subquery) -> dict[str, Any]:
    saved = asked.c.baseline_pico - asked.c.cost_pico  # null unless both are known
    baseline = case((saved.is_not(None), asked.c.baseline_pico))
    row = connection.execute(
        select(
            func.count().label("requests"),
            func.min(asked.c.created_at).label("first_at"),
            func.max(asked.c.created_at).label("last_at"),
            *_spending(asked),
            _escalated(asked),
            func.count(saved).label("compared"),
            func.coalesce(func.sum(baseline), 0).label("baseline"),
            func.coalesce(func.sum(saved), 0).label("saved"),
        )
    )
    totals = _with_dollars(row.mappings().one())
    return totals | {name: Decimal(totals[name]) / PICO for name in ("baseline", "saved")}


def _feedback(connection: Connection, asked: Subquery) -> dict[str, Any]:
    same = (asked.c.id == feedback.c.request_id) & (asked.c.tenant == feedback.c.tenant)
    found = select(
        func.count(feedback.c.request_id.distinct()).label("scored"),
        func.avg(feedback.c.score).label("mean_score"),
    )
    scored = found.join_from(asked, feedback, same).where(feedback.c.score.is_not(None))
    return dict(connection.execute(scored).mappings().one())


def _arms(connection: Connection, asked: Subquery) -> list[ArmUse]:
    keys = (asked.c.policy, asked.c.experiment, asked.c.arm)
    number = func.count().label("requests")
    grouped = select(*keys, number, *_spending(asked), _escalated(asked)).group_by(*keys)
    rows = connection.execute(grouped.order_by(number.desc(), *keys)).mappings()
    return [ArmUse(**_with_dollars(row)) for row in rows]


def _tiers(connection: Connection, asked: Subquery, called: Subquery) -> list[TierUse]:
    answered = _counts(connection, asked.c.tier)
    of_models = called.c.kind != Kind.JUDGE.value
    grouped = select(
        called.c.tier,
        func.count().label("calls"),
        _number(called.c.error_type.is_not(None)).label("failed"),
        *(_sum(called.c[name]) for name in _TOKENS),
        func.coalesce(func.sum(_reported_prompt(called)), 0).label("cache_reported"),
        *_spending(called),
    )
    grouped = grouped.where(of_models).group_by(called.c.tier).order_by(called.c.tier)
    return [
        TierUse(answered=answered.get(row["tier"], 0), **_with_dollars(row))
        for row in connection.execute(grouped).mappings()
    ]


def _judges(connection: Connection, answers: Subquery) -> list[JudgeUse]:
    keys = (answers.c.judge, answers.c.tier)
    came_in = answers.c.error_type.is_(None) & answers.c.judge.is_not(None)
    grouped = select(
        *keys,
        func.count().label("answers"),
        _number(answers.c.outcome == Outcome.ACCEPTED.value).label("accepted"),
        _number(answers.c.score.is_(None)).label("silent"),
        func.avg(answers.c.score).label("mean_score"),
    )
    grouped = grouped.where(came_in).group_by(*keys).order_by(*keys)
    return [JudgeUse(**_plain(row)) for row in connection.execute(grouped).mappings()]


def _counts(connection: Connection, key: ColumnElement[Any]) -> dict[str, int]:
    number = func.count().label("number")
    grouped = select(key, number).where(key.is_not(None)).group_by(key)
    rows = connection.execute(grouped.order_by(number.desc(), key))
    return {row[0]: row[1] for row in rows}


def _quantiles(
    connection: Connection, values: ColumnElement[Any], *only: ColumnElement[bool]
) -> Quantiles | None:
    ranked = select(
        values.label("value"),
        func.row_number().over(order_by=values).label("rank"),
        func.count().over().label("number"),
    )
    ranks = ranked.where(values.is_not(None), *only).subquery()
    of = {percent: (ranks.c.number * percent + 99) // 100 for percent in (50, 95, 99)}
    found = connection.execute(
        select(ranks.c.value, *(ranks.c.rank == rank for rank in of.values())).where(
            ranks.c.rank.in_(of.values())
        )
    ).all()
    if not found:
        return None
    p50, p95, p99 = (next(row[0] for row in found if row[place]) for place in (1, 2, 3))
    return Quantiles(p50=p50, p95=p95, p99=p99)


_TOKENS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
)


def _reported_prompt(called: FromClause) -> ColumnElement[Any]:
    prompt = (
        func.coalesce(called.c.input_tokens, 0)
        + called.c.cache_read_tokens
        + func.coalesce(called.c.cache_write_tokens, 0)
    )
    return case((called.c.cache_read_tokens.is_not(None), prompt), else_=0)


def _spending(table: FromClause) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    return (
        func.coalesce(func.sum(table.c.cost_pico), 0).label("pico"),
        _number(table.c.cost_pico.is_(None)).label("unknown_cost"),
    )


def _escalated(asked: FromClause) -> ColumnElement[Any]:
    return _number(asked.c.answers > 1).label("escalated")


def _sum(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column), 0).label(column.key)


def _number(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _with_dollars(row: Any) -> dict[str, Any]:
    values = _plain(row)
    dollars = Decimal(values.pop("pico")) / PICO
    return {**values, "dollars": dollars}


def _plain(row: Any) -> dict[str, Any]:
    """Whole numbers as int: PostgreSQL sums 64-bit integers into a Decimal."""
    return {
        name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()
    }
