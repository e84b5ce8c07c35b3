"""What another policy would have cost and scored on the traffic of the log.

A request that the log can follow the policy through is known. Of the others those that were drawn
for shadow calls show what would have come, and stand for the rest (`estimate`). An answer's quality
is what was said of it, else what a judge said that nobody acted on.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from cascade.snapshot import Snapshot
from evals.logged.believing import Believing
from evals.logged.columns import Columns
from evals.logged.estimate import Estimate, Rows, doubly_robust, interval
from evals.logged.following import Follower, ReplayError
from evals.logged.reading import judges_of_draws, logged, output_tokens
from evals.logged.requests import replayed

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A mean under both policies, and the difference of the two on the same requests."""

    before: Estimate
    after: Estimate
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What another policy would have done.

    Attributes:
        requests: that it was asked about.
        sessions: that these are of.
        skipped: requests that it was not asked about, by why.
        other_configuration: share of the requests that another configuration served.
        followed: share that the log follows it through without a draw.
        drawn: requests that were drawn, among the others.
        missing: share of the requests by the tier that could not be followed.
        unsupported: share of the requests by tier for which too few were drawn.
        judge: whose word on the quality counts where nobody gave feedback; None: nobody's.
        cost: dollars of a request.
        by_quote: dollars of a request where what has no support costs what it is quoted; NaN where
            a quote is missing.
        quality: in [0, 1]; None where nothing is known of it.
        shares: by tier, share of the answers before and after.
    """

    policy: str
    requests: int
    sessions: int
    skipped: Mapping[str, int]
    other_configuration: float
    followed: float
    drawn: int
    missing: Mapping[str, float]
    unsupported: Mapping[str, float]
    judge: str | None
    cost: Compared
    by_quote: float
    quality: Compared | None
    shares: Mapping[str, tuple[float, Estimate]]


@dataclass(slots=True, kw_only=True)
class _Log:
    """What was read."""

    rows: Columns = field(default_factory=Columns)
    skipped: Counter[str] = field(default_factory=Counter)
    other: int = 0


def replay(
    engine: Engine,
    snapshot: Snapshot,
    policy: str,
    *,
    since: float | None = None,
    judge: str | None = None,
) -> Replay:
    """Follow a policy over the log.

    Args:
        engine: of the audit database.
        snapshot: the configuration, without its models.
        policy: the name of a policy or of a tier.
        since: seconds since the epoch; None: the whole log.
        judge: whose word on the quality counts; None: that of the only judge of shadow calls on
            whose word the policy does not act.

    Raises:
        ReplayError: there is nothing to replay over, or no telling which judge is meant.
        UnknownModelError: there is no such policy.
    """
    if policy in snapshot.experiments:
        raise ReplayError(f"{policy} is an experiment; name one of the policies of its arms")
    arm = snapshot.arm(policy, "")
    acted = {step.judge for step in arm.policy.steps}
    judge = _judge(judge, judges_of_draws(engine, since), acted)
    follower = Follower(arm=arm, tiers=snapshot.tiers, output_tokens=output_tokens(engine, since))
    believing = Believing(arm=arm, snapshot=snapshot)
    log, served = _Log(), dict[tuple[str, str], str]()
    for each in logged(engine, since):
        record = each.record
        whose = (record.tenant, record.session)
        found = replayed(each, follower, believing, served.get(whose, ""), judge)
        if record.session and record.tier:
            served[whose] = record.tier
        if isinstance(found, str):
            log.skipped[found] += 1
            continue
        log.rows.add(found)
        log.other += record.config_version != snapshot.version
    if not len(log.rows):
        raise ReplayError(f"there is nothing to replay over: {_why(log.skipped)}")
    return _summed(policy, log, judge, list(snapshot.tiers))


def _judge(wanted: str | None, there: Sequence[str], acted: set[str | None]) -> str | None:
    if wanted is not None:
        if wanted not in there:
            known = ", ".join(there) or "none did"
            raise ReplayError(f"no shadow call was judged by {wanted!r}; those that did: {known}")
        return wanted
    independent = [name for name in there if name not in acted]
    if len(independent) > 1:
        raise ReplayError(
            f"shadow calls were judged by {', '.join(independent)}; name one of them with --judge"
        )
    return independent[0] if independent else None


def _summed(policy: str, log: _Log, judge: str | None, tiers: Sequence[str]) -> Replay:
    rows, count = log.rows, len(log.rows)
    quoted = rows.column("quoted")
    stated = None if np.isnan(quoted).any() else quoted
    cost = _compared(rows.known("cost_before"), rows.rows("cost"), stated)
    quality = _compared(rows.rows("quality_before"), rows.rows("quality"))
    without = np.isnan(cost.after.influence)
    wanted = Counter(rows.texts("missing"))
    lost = Counter(
        tier for tier, is_lost in zip(rows.texts("missing"), without, strict=True) if is_lost
    )
    return Replay(
        policy=policy,
        requests=count,
        sessions=len(np.unique(rows.column("cluster"))),
        skipped=dict(log.skipped),
        other_configuration=log.other / count,
        followed=wanted[""] / count,
        drawn=cost.after.drawn,
        missing={tier: number / count for tier, number in wanted.items() if tier},
        unsupported={tier: number / count for tier, number in lost.items() if tier},
        judge=judge,
        cost=cost,
        by_quote=float(np.where(without, quoted, cost.after.influence).mean()),
        quality=None if math.isnan(quality.after.mean) else quality,
        shares={
            tier: (
                float(rows.is_text("tier_before", tier).mean()),
                doubly_robust(rows.answers_of(tier)),
            )
            for tier in tiers
        },
    )


def _compared(before: Rows, after: Rows, model: Vector | None = None) -> Compared:
    one, other = doubly_robust(before), doubly_robust(after, model=model)
    drawn = np.concatenate([_drawn(before), _drawn(after)])
    counted = drawn if len(drawn) else None
    difference, low, high = interval(other.influence - one.influence, before.clusters, counted)
    return Compared(before=one, after=other, difference=difference, low=low, high=high)


def _drawn(rows: Rows) -> NDArray[Any]:
    return rows.clusters[(rows.chance > 0.0) & (rows.chance < 1.0)]


def _why(skipped: Mapping[str, int]) -> str:
    if not skipped:
        return "the log has no requests of that time"
    return "; ".join(f"{count} left out: {why}" for why, count in skipped.items())
