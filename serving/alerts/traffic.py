"""What the last hour of traffic was like, and the hours of the week before, by what is watched."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Engine,
    Select,
    case,
    cast,
    func,
    literal,
    select,
)

from cascade.audit import PICO
from cascade.types import Kind, Outcome
from serving.alerts.jumps import Hour, Rule
from serving.store.tables import attempts, requests

HOUR = 3600.0
WEEK = 7 * 24 * HOUR

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "judge_silent": Rule(least=0.2),
        "escalation_rate": Rule(least=0.1),
        "cost": Rule(least=0.5, relative=True),
        "cache_hit_rate": Rule(falls=True, least=0.15),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """By what is watched and by subject: the last hour, and those before."""

    now: Mapping[tuple[str, str], Hour]
    past: Mapping[tuple[str, str], list[Hour]]


def last_hour(engine: Engine, now: float) -> dict[tuple[str, str], Hour]:
    """By kind and subject, the hour that ends now."""
    found = _hours(engine, now - HOUR, now, literal(0))
    return {key: hours[0] for key, hours in found.items()}


def week_before(engine: Engine, now: float) -> dict[tuple[str, str], list[Hour]]:
    """By kind and subject, the whole hours of the clock in the week before the last hour."""
    until = math.floor((now - HOUR) / HOUR) * HOUR
    hour = cast(requests.c.created_at, BigInteger) // int(HOUR)
    return _hours(engine, until - WEEK, until, hour)


def _hours(
    engine: Engine, since: float, until: float, hour: ColumnElement[Any]
) -> dict[tuple[str, str], list[Hour]]:
    found: dict[tuple[str, str], list[Hour]] = defaultdict(list)
    within = (requests.c.created_at >= since, requests.c.created_at < until)
    with engine.connect() as connection:
        for kind, asked in _ASKED.items():
            for subject, number, s, ss, weights in _rows(connection, asked(hour), within):
                found[kind, subject].append(_hour(kind, number, s, ss, weights))
    return found


def _rows(
    connection: Connection, asked: Select[Any], within: tuple[ColumnElement[bool], ...]
) -> list[tuple[str, float, float, float, float]]:
    rows = connection.execute(asked.where(*within))
    return [
        (subject, float(number or 0), float(s or 0), float(ss or 0), float(weights or 0))
        for subject, number, s, ss, weights in rows
        if number
    ]


def _hour(kind: str, number: float, s: float, ss: float, weights: float) -> Hour:
    """From the sum of the weights, of weighted values and their squares, and of weights squared."""
    mean = s / number
    if kind != "cost":
        return Hour(number=number**2 / weights, mean=min(1.0, max(0.0, mean)))
    variance = max(0.0, ss / number - mean**2)
    return Hour(number=number, mean=mean, deviation=math.sqrt(variance))


def _silent(hour: ColumnElement[Any]) -> Select[Any]:
    """Of the questions to each judge that were not called off, those it had no answer to."""
    silent = case((attempts.c.score.is_(None), 1.0), else_=0.0)
    came = func.coalesce(attempts.c.outcome, "") != Outcome.CANCELLED.value
    asked = attempts.c.kind.in_([Kind.JUDGE.value]) & attempts.c.judge.is_not(None) & came
    return _counted(attempts.c.judge, silent, hour, joined=True).where(asked)


def _escalated(hour: ColumnElement[Any]) -> Select[Any]:
    escalated = case((requests.c.answers > 1, 1.0), else_=0.0)
    return _counted(requests.c.policy, escalated, hour).where(requests.c.answers > 0)


def _cost(hour: ColumnElement[Any]) -> Select[Any]:
    dollars = cast(requests.c.cost_pico, Double) / literal(float(PICO))
    return _counted(requests.c.policy, dollars, hour).where(requests.c.cost_pico.is_not(None))


def _cached(hour: ColumnElement[Any]) -> Select[Any]:
    """By tokens: a call counts by its prompt's."""
    read = cast(attempts.c.cache_read_tokens, Double)
    prompt = (
        func.coalesce(attempts.c.input_tokens, 0)
        + read
        + func.coalesce(attempts.c.cache_write_tokens, 0)
    )
    wanted = select(
        attempts.c.tier, func.sum(prompt), func.sum(read), literal(0.0), func.sum(prompt * prompt)
    ).join_from(requests, attempts, attempts.c.request_id == requests.c.id)
    reported = (attempts.c.kind == Kind.ANSWER.value) & read.is_not(None)
    return wanted.where(reported).group_by(attempts.c.tier, hour)


def _counted(
    subject: ColumnElement[Any],
    value: ColumnElement[Any],
    hour: ColumnElement[Any],
    *,
    joined: bool = False,
) -> Select[Any]:
    number = func.count()
    wanted = select(subject, number, func.sum(value), func.sum(value * value), number)
    if joined:
        wanted = wanted.join_from(requests, attempts, attempts.c.request_id == requests.c.id)
    else:
        wanted = wanted.select_from(requests)
    return wanted.group_by(subject, hour)


_ASKED: Mapping[str, Callable[[ColumnElement[Any]], Select[Any]]] = MappingProxyType(
    {
        "judge_silent": _silent,
        "escalation_rate": _escalated,
        "cost": _cost,
        "cache_hit_rate": _cached,
    }
)
