"""The audit log added up, for people in 100 columns and as JSON for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from serving.store.formats import (
    COLOURS,
    NONE,
    columns,
    decimal,
    dollars,
    duration,
    moment,
    percent,
    plain,
    tokens,
)
from serving.store.stats import ArmUse, JudgeUse, Quantiles, Stats, TierUse


def stats_view(found: Stats) -> RenderableType:
    """Totals, then by arm, by tier and by judge, then times."""
    if not found.requests:
        return Group(
            plain("No requests in that time.", "dim"), *(plain(line) for line in _missing(found))
        )
    times = [
        ("request", found.duration),
        ("Cascade's own", found.overhead),
        ("first token of a call", found.first_token),
    ]
    return Group(
        _totals(found),
        *(plain(line, "dim") for line in _when(found)),
        *(plain(line) for line in (*_missing(found), *_outcome(found))),
        _arms(found.arms),
        _tiers(found),
        *([_judges(found.judges)] if found.judges else []),
        _times(times),
    )


def stats_json(found: Stats) -> dict[str, Any]:
    """The same as JSON takes it; dollars are decimal strings."""
    tiers = [{**asdict(tier), "cached_share": tier.cached_share} for tier in found.tiers]
    value = _json({**asdict(found), "tiers": tiers})
    if not isinstance(value, dict):
        raise TypeError("a dict stays a dict")
    return value


def _totals(found: Stats) -> Text:
    unknown = f" (and {found.unknown_cost:,} of unknown cost)" if found.unknown_cost else ""
    parts = [
        (f"{found.requests:,} requests", "bold"),
        (", ", ""),
        (f"{dollars(found.dollars)}{unknown}", "bold"),
        (f", {found.escalated:,} escalated ({percent(found.escalated, found.requests)})", ""),
    ]
    for status, number in found.statuses.items():
        parts += [(", ", ""), (f"{number:,} {status}", COLOURS.get(status, ""))]
    return Text.assemble(*parts)


def _when(found: Stats) -> Iterator[str]:
    if found.first_at is not None and found.last_at is not None:
        yield f"{moment(found.first_at)} to {moment(found.last_at)} UTC"


def _missing(found: Stats) -> Iterator[str]:
    if found.uncounted:
        yield (
            f"{found.uncounted:,} requests of an older version are not in these numbers yet: "
            "`cascade db upgrade` adds them, and so does the service, more slowly"
        )


def _outcome(found: Stats) -> Iterator[str]:
    """What was saved, and what those who asked thought of it, as far as either is known."""
    if found.compared:
        yield (
            f"saved {dollars(found.saved)} ({percent(float(found.saved), float(found.baseline))}) "
            f"against the dearest tier alone ({dollars(found.baseline)} for the "
            f"{found.compared:,} requests compared)"
        )
    if found.scored:
        yield f"requests scored: {found.scored:,}, {decimal(found.mean_score)} in the mean"


def _arms(arms: Sequence[ArmUse]) -> RenderableType:
    numbers = ("requests", "escalated", "cost", "a request")
    table = columns("policy", "experiment", "arm", right=numbers)
    for arm in arms:
        known = arm.requests - arm.unknown_cost
        table.add_row(
            plain(arm.policy),
            plain(arm.experiment or NONE),
            plain(arm.arm or NONE),
            f"{arm.requests:,}",
            percent(arm.escalated, arm.requests),
            _cost(arm, arm.requests),
            dollars(arm.dollars / known if known else None),
        )
    return table


def _tiers(found: Stats) -> RenderableType:
    answered = sum(tier.answered for tier in found.tiers)
    numbers = ("answers", "share", "calls", "failed", "input", "cached", "output", "cost")
    table = columns("tier", right=numbers)
    for tier in found.tiers:
        table.add_row(
            plain(tier.tier),
            f"{tier.answered:,}",
            percent(tier.answered, answered),
            f"{tier.calls:,}",
            f"{tier.failed:,}",
            tokens(tier.input_tokens),
            _cached(tier),
            tokens(tier.output_tokens + tier.reasoning_tokens),
            _cost(tier, tier.calls),
        )
    return table


def _cost(use: ArmUse | TierUse, number: int) -> str:
    """The sum of what is known, marked as a lower bound when something is not."""
    if use.unknown_cost == number:
        return dollars(None)
    return f"{'≥ ' if use.unknown_cost else ''}{dollars(use.dollars)}"


def _cached(tier: TierUse) -> str:
    if tier.cached_share is None:
        return "not reported"
    return f"{tokens(tier.cache_read_tokens)} ({tier.cached_share:.1%})"


def _judges(judges: Sequence[JudgeUse]) -> RenderableType:
    numbers = ("answers", "accepted", "silent", "mean score")
    table = columns("judge", "of tier", right=numbers)
    for judge in judges:
        table.add_row(
            plain(judge.judge),
            plain(judge.tier),
            f"{judge.answers:,}",
            percent(judge.accepted, judge.answers),
            f"{judge.silent:,}",
            decimal(judge.mean_score),
        )
    return table


def _times(times: Sequence[tuple[str, Quantiles | None]]) -> RenderableType:
    table = columns("time", right=("p50", "p95", "p99"))
    for name, quantiles in times:
        table.add_row(name, *(duration(value) for value in _values(quantiles)))
    return table


def _values(quantiles: Quantiles | None) -> Iterator[float | None]:
    for name in ("p50", "p95", "p99"):
        yield None if quantiles is None else getattr(quantiles, name)


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return value
