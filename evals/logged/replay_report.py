"""What `cascade eval replay` says: two tables, what they rest on, and where nothing is known."""

import math
from typing import Any

import numpy as np

from evals.logged.estimate import Estimate
from evals.logged.replay import Compared, Replay
from evals.panel_report import Printed

FEW_DRAWN = 30
"""Requests that were drawn below which an interval is told with a warning."""


def report(found: Replay) -> list[Printed | str]:
    """For the screen."""
    skipped = [
        f"Left out: {count} requests, as {why}." for why, count in found.skipped.items() if count
    ]
    return [_means(found), _answers(found), *_sentences(found), *skipped]


def plain(found: Replay) -> dict[str, Any]:
    """For machines; a number that is not known is null."""
    return {
        "policy": found.policy,
        "requests": found.requests,
        "sessions": found.sessions,
        "skipped": dict(found.skipped),
        "other_configuration": found.other_configuration,
        "followed": found.followed,
        "drawn": found.drawn,
        "effective": found.cost.after.effective,
        "missing": dict(found.missing),
        "unsupported": dict(found.unsupported),
        "judge": found.judge,
        "dollars": _compared(found.cost),
        "dollars_by_quote": _number(found.by_quote),
        "quality": None if found.quality is None else _compared(found.quality),
        "answers": {
            tier: {"served": before, "replayed": _estimate(after)}
            for tier, (before, after) in found.shares.items()
        },
    }


def _means(found: Replay) -> Printed:
    rows = [("dollars for 1,000 requests", *_cells(found.cost, 1_000.0, "{:.4g}"))]
    if found.quality is not None:
        rows.append(("quality", *_cells(found.quality, 1.0, "{:.3f}")))
    requests = f"{found.requests:,} requests of {found.sessions:,} sessions"
    head = ("in the mean", "as served", f"under {found.policy}", "difference")
    return Printed(f"{found.policy} over {requests}, 95 % intervals", head, rows)


def _cells(both: Compared, scale: float, form: str) -> tuple[str, str, str]:
    spread = (both.difference, both.low, both.high)
    return (
        _shown(both.before, scale, form),
        _shown(both.after, scale, form),
        _interval([each * scale for each in spread], form.replace(":", ":+")),
    )


def _shown(one: Estimate, scale: float, form: str) -> str:
    return _interval([each * scale for each in (one.mean, one.low, one.high)], form)


def _interval(numbers: list[float], form: str) -> str:
    if math.isnan(numbers[0]):
        return "not known"
    mean, low, high = (form.format(each) for each in numbers)
    return mean if math.isnan(numbers[1]) or low == high else f"{mean} [{low}, {high}]"


def _answers(found: Replay) -> Printed:
    rows = [
        (tier, f"{before:.1%}", _interval([after.mean, after.low, after.high], "{:.1%}"))
        for tier, (before, after) in found.shares.items()
    ]
    return Printed("share of the requests by who answers", ("tier", "as served", "replayed"), rows)


def _no_quality(found: Replay) -> str:
    start = f"Nothing is known of the quality under {found.policy}: of its answers too few"
    if found.judge is not None:
        return f"{start} have feedback or were looked at by judge {found.judge}."
    return (
        f"{start} have feedback, and no judge on whose word it does not act looked at answers of "
        "requests that were drawn. Name one under `shadow: {judges: [...]}`."
    )


def _sentences(found: Replay) -> list[str]:
    said = [_verdict(found), _basis(found)]
    said += [_without(found)] if found.unsupported else []
    if found.quality is None:
        said.append(_no_quality(found))
    elif found.quality.after.unsupported or found.quality.before.unsupported:
        both = max(found.quality.after.unsupported, found.quality.before.unsupported)
        said.append(
            f"The quality is that of the requests of which enough is known; {both:.1%} are not "
            "among them. The difference is of requests that are known both ways."
        )
    if found.other_configuration:
        said.append(
            f"{found.other_configuration:.0%} of the requests were served by another "
            "configuration than this one; its beliefs, judges and prices stand in the log as they "
            "were."
        )
    return said


def _verdict(found: Replay) -> str:
    cost, quality = found.cost, found.quality
    paid = _mean_where_both(cost)
    parts = [f"No telling what {found.policy} would cost"]
    if not math.isnan(cost.difference) and paid:
        low, mid, high = (each / paid for each in (cost.low, cost.difference, cost.high))
        word = f"{abs(mid):.0%} {'more' if mid > 0 else 'less'}" if mid else "the same"
        bounds = "" if math.isnan(low) or low == high else f" [{low:+.0%}, {high:+.0%}]"
        parts = [f"{found.policy} costs {word}{bounds}"]
    if quality is not None and not math.isnan(quality.difference):
        low, mid, high = (100 * each for each in (quality.low, quality.difference, quality.high))
        undecided = ": not told apart yet" if low < 0.0 < high else ""
        parts.append(f"quality {mid:+.1f} points [{low:+.1f}, {high:+.1f}]{undecided}")
    return "; ".join(parts) + "."


def _mean_where_both(both: Compared) -> float:
    """What was paid for the requests that the difference is of."""
    there = ~np.isnan(both.after.influence)
    return float(both.before.influence[there].mean()) if there.any() else 0.0


def _basis(found: Replay) -> str:
    said = f"The log follows {found.policy} through {found.followed:.1%} of the requests"
    if found.followed == 1.0:
        return f"{said}."
    drawn = found.cost.after
    few = "; so few that the intervals are rough" if drawn.drawn < FEW_DRAWN else ""
    counted = f"{drawn.drawn:,} of these were drawn for shadow calls, which count as "
    counted += f"{drawn.effective:,.0f} of equal weight{few}."
    if not drawn.drawn:
        counted = "None of these were drawn for shadow calls."
    tiers = ", ".join(f"{tier} {share:.1%}" for tier, share in found.missing.items())
    return f"{said}; of the others it would have to know what other tiers say ({tiers}). {counted}"


def _without(found: Replay) -> str:
    tiers = ", ".join(f"{tier} in {share:.1%}" for tier, share in found.unsupported.items())
    quoted = ""
    if not math.isnan(found.by_quote):
        quoted = (
            f" If these cost what they are quoted, 1,000 requests cost "
            f"{1_000 * found.by_quote:.4g} dollars."
        )
    return (
        f"No support: {found.policy} asks {tiers} of the requests, and too few of such requests "
        f"were drawn to tell what comes of it; the table leaves them out.{quoted} Draw some with "
        "`shadow: {share: 0.02, ...}` (docs/shadow.md)."
    )


def _compared(both: Compared) -> dict[str, Any]:
    return {
        "before": _estimate(both.before),
        "after": _estimate(both.after),
        "difference": [_number(each) for each in (both.difference, both.low, both.high)],
    }


def _estimate(one: Estimate) -> dict[str, Any]:
    return {
        "mean": _number(one.mean),
        "interval": [_number(one.low), _number(one.high)],
        "open": one.open,
        "drawn": one.drawn,
        "unsupported": one.unsupported,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
