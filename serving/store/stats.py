"""The audit log added up: what was asked, who answered, what it cost and how long it took.

All of it comes from the sums, so that it takes as long for a million requests as for a thousand.
Quantiles are nearest-rank over bins: within 2 % of the smallest value that at least that share of
the values does not exceed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Engine, func, select

from cascade.audit import PICO
from cascade.types import Kind
from serving.prewarm.recorded import POLICY as PREWARM
from serving.store.ranges import Range, Summed, read_exactly, waiting
from serving.store.sums import MICRO, SILENT, time_of
from serving.store.tables import call_sums, judge_sums, request_sums, requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Milliseconds that half, 95 % and 99 % of the values do not exceed, within 2 %."""

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
        dollars: of the requests whose cost is known, those sent ahead to fill a cache included.
        unknown_cost: requests whose cost is not.
        compared: requests of which both the cost and what the dearest tier alone would have cost
            are known.
        baseline: what the dearest tier alone would have cost for those.
        saved: that, less what they did cost.
        scored: requests that got a score from their tenant.
        mean_score: of these scores; None when there are none.
        uncounted: requests of an older version that are in none of these numbers yet.
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
    uncounted: int = 0


def stats(engine: Engine, since: float | None = None, until: float | None = None) -> Stats:
    """Add up the requests that began at `since` or later and before `until`, in epoch seconds."""
    span = Range.of(since, until)
    with engine.connect() as connection:
        found, times = read_exactly(connection, span)
        first_at, last_at = _first_and_last(connection, since, until)
        left = waiting(connection)
    asked = found[request_sums]
    return Stats(
        **totals_of(asked),
        first_at=first_at,
        last_at=last_at,
        uncounted=left,
        statuses=requests_by(of_clients(asked), "status"),
        arms=arms_of(asked),
        tiers=tiers_of(asked, found[call_sums]),
        judges=judges_of(found[judge_sums]),
        duration=quantiles_of(times["duration"]),
        overhead=quantiles_of(times["overhead"]),
        first_token=quantiles_of(times["first_token"]),
    )


def totals_of(asked: Sequence[Summed]) -> dict[str, Any]:
    """Sums over all requests, by the names that Stats has for them."""
    of, spent = total(of_clients(asked)), total(asked)
    return {
        **{name: of[name] for name in ("requests", "escalated", "compared", "scored")},
        "unknown_cost": spent["unknown_cost"],
        "dollars": dollars(spent["cost_pico"]),
        "baseline": dollars(of["baseline_pico"]),
        "saved": dollars(of["baseline_pico"] - of["compared_cost_pico"]),
        "mean_score": of["score_micro"] / MICRO / of["scores"] if of["scores"] else None,
    }


def of_clients(asked: Iterable[Summed]) -> Iterator[Summed]:
    """Without requests that were sent ahead to fill a cache: these only count as spending."""
    return (each for each in asked if each.key["policy"] != PREWARM)


def requests_by(asked: Iterable[Summed], key: str) -> dict[str, int]:
    """How many requests there are by one key, the most first; those without it are left out."""
    numbers = Counter[str]()
    for each in asked:
        if each.key[key]:
            numbers[each.key[key]] += each.of["requests"]
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


def arms_of(asked: Iterable[Summed]) -> list[ArmUse]:
    """What each arm did, the busiest first."""
    ways = grouped(asked, ("policy", "experiment", "arm"))
    uses = [
        ArmUse(
            policy=policy,
            experiment=experiment or None,
            arm=arm or None,
            requests=of["requests"],
            escalated=of["escalated"],
            dollars=dollars(of["cost_pico"]),
            unknown_cost=of["unknown_cost"],
        )
        for (policy, experiment, arm), of in ways.items()
    ]
    return sorted(uses, key=lambda use: (-use.requests, use.policy, use.experiment or ""))


def tiers_of(asked: Iterable[Summed], called: Iterable[Summed]) -> list[TierUse]:
    """What each tier was called for, by its name."""
    answered = requests_by(asked, "tier")
    of_models = grouped((each for each in called if each.key["kind"] != Kind.JUDGE), ("tier",))
    return [
        TierUse(
            tier=tier,
            answered=answered.get(tier, 0),
            dollars=dollars(of["cost_pico"]),
            **{name: of[name] for name in _OF_CALLS},
        )
        for (tier,), of in sorted(of_models.items())
    ]


def judges_of(judged: Iterable[Summed]) -> list[JudgeUse]:
    """What each judge said of each tier's answers, by their names."""
    uses: dict[tuple[str, ...], list[Summed]] = defaultdict(list)
    for each in judged:
        uses[each.key["judge"], each.key["tier"]].append(each)
    return [_judge(judge, tier, bins) for (judge, tier), bins in sorted(uses.items())]


def quantiles_of(bins: Counter[int]) -> Quantiles | None:
    """Of how many times fall into each bin; None when nothing was timed."""
    number = bins.total()
    if not number:
        return None
    values, reached, ordered = [], 0, iter(sorted(bins))
    at = 0
    for percent in (50, 95, 99):
        rank = (number * percent + 99) // 100
        while reached < rank:
            at = next(ordered)
            reached += bins[at]
        values.append(time_of(at))
    return Quantiles(p50=values[0], p95=values[1], p99=values[2])


def grouped(sums: Iterable[Summed], by: Sequence[str]) -> dict[tuple[str, ...], Mapping[str, int]]:
    """The sums by fewer keys."""
    parts: dict[tuple[str, ...], list[Summed]] = defaultdict(list)
    for each in sums:
        parts[tuple(each.key[name] for name in by)].append(each)
    return {key: total(part) for key, part in parts.items()}


def total(sums: Iterable[Summed]) -> Mapping[str, int]:
    """The sum of sums; of none, zeros."""
    of: Counter[str] = Counter()
    for each in sums:
        for name, number in each.of.items():
            of[name] += number
    return of


def dollars(pico: int) -> Decimal:
    """Whole pico-dollars as dollars."""
    return Decimal(pico) / PICO


def _judge(judge: str, tier: str, bins: Sequence[Summed]) -> JudgeUse:
    of = total(bins)
    silent = sum(each.of["answers"] for each in bins if each.key["bin"] == SILENT)
    scored = of["answers"] - silent
    return JudgeUse(
        judge=judge,
        tier=tier,
        answers=of["answers"],
        accepted=of["accepted"],
        silent=silent,
        mean_score=of["score_micro"] / MICRO / scored if scored else None,
    )


def _first_and_last(
    connection: Connection, since: float | None, until: float | None
) -> tuple[float | None, float | None]:
    at = requests.c.created_at
    wanted = select(func.min(at)), select(func.max(at))
    bounds = [] if since is None else [at >= since]
    bounds += [] if until is None else [at < until]
    first, last = (connection.scalar(each.where(*bounds)) for each in wanted)
    return first, last


_OF_CALLS = (
    *("calls", "failed", "input_tokens", "cache_read_tokens", "cache_write_tokens"),
    *("output_tokens", "reasoning_tokens", "cache_reported", "unknown_cost"),
)
