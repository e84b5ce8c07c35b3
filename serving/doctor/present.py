"""The doctor's findings for people, in 100 columns, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from serving.doctor.difference import Difference
from serving.doctor.doctor import Diagnosis, Finding, TierWarmth
from serving.store.formats import NONE, columns, dollars, millions, percent, plain, tokens

_ID_WIDTH = 12


def diagnosis_view(found: Diagnosis, top: int) -> RenderableType:
    """How warm each tier was, then the causes, the dearest first."""
    if not found.calls:
        return plain("No calls in that time: widen --since, or send a request first.", "dim")
    return Group(
        *(plain(line, "bold") for line in _totals(found)),
        _tiers(found.tiers),
        *(plain(line, "dim") for line in _apart(found)),
        *_findings(found, top),
    )


def diagnosis_json(found: Diagnosis, top: int) -> dict[str, Any]:
    """The same for programs; dollars are decimal strings."""
    return {
        "calls": found.calls,
        "lost_tokens": found.tokens,
        "lost_usd": f"{found.dollars:f}",
        "spent_usd": f"{found.spent:f}",
        "output_share": found.output_share,
        "tiers": [_tier_json(tier) for tier in found.tiers],
        "findings": [_finding_json(each) for each in found.findings[:top]],
    }


def difference_view(before: str, after: str, found: Difference) -> RenderableType:
    """Two prompts segment by segment."""
    table = columns("segment", "what became of it", right=("first", "second"))
    for segment in found.segments:
        table.add_row(
            segment.name,
            plain(segment.said, "green" if segment.equal else "yellow"),
            tokens(segment.before_tokens),
            tokens(segment.after_tokens),
        )
    return Group(plain(f"{before} and {after}, in about so many tokens"), table, plain(_sum(found)))


def difference_json(before: str, after: str, found: Difference) -> dict[str, Any]:
    """The same for programs."""
    cause = found.found.cause
    return {
        "before": before,
        "after": after,
        "segments": [asdict(segment) for segment in found.segments],
        "cause": cause.key if cause else None,
        "said": _sum(found),
        "common": found.common,
    }


def _totals(found: Diagnosis) -> Iterator[str]:
    prompt = sum(tier.prompt_tokens for tier in found.tiers)
    yield (
        f"{found.calls:,} calls, {prompt:,} prompt tokens; {percent(found.tokens, prompt)} of them "
        f"could have been read and were not: {_money(found.findings)} of {dollars(found.spent)}"
    )
    if found.output_share is not None:
        yield f"answers are {found.output_share:.1%} of the spend, which no cache can save"


def _tiers(tiers: Sequence[TierWarmth]) -> RenderableType:
    numbers = ("calls", "prompt", "by token", "by request", "possible", "first", "missed", "lost")
    table = columns("tier", right=numbers)
    for tier in tiers:
        table.add_row(
            plain(tier.tier),
            f"{tier.calls:,}",
            millions(tier.prompt_tokens),
            _share(tier.by_token),
            _share(tier.by_request),
            _share(tier.possible),
            f"{tier.first:,}",
            f"{tier.missed:,}",
            millions(tier.lost_tokens),
        )
    return table


def _apart(found: Diagnosis) -> Iterator[str]:
    """What no share counts."""
    for tier in found.tiers:
        if tier.unreported:
            yield (
                f"{tier.tier}: cached tokens of {tier.unreported:,} of {tier.calls:,} calls are "
                "not reported; they are in none of these numbers"
            )
        if tier.unknown:
            yield (
                f"{tier.tier}: {tier.unknown:,} calls have no segments in the log, so no cause can "
                "be told"
            )


def _findings(found: Diagnosis, top: int) -> Iterator[RenderableType]:
    if not found.findings:
        yield plain("Nothing was lost: what could be read was.", "green")
    for number, each in enumerate(found.findings[:top], 1):
        fork = "; a fork, which loses its parent's prefix" if each.cause.fork else ""
        yield Text.assemble(
            (f"{number:>2} ", "dim"),
            (_money([each]), "bold"),
            (f"  {_calls(each.calls)}, {each.tokens:,} tokens, {', '.join(each.tiers)}", ""),
        )
        yield _indented(f"{each.said}{fork}")
        yield _indented(each.cause.advice, "dim")
        pair = f"{each.before[:_ID_WIDTH]} {each.after[:_ID_WIDTH]}"
        yield _indented(f"cascade cache doctor --diff {pair}", "dim")
    if len(found.findings) > top:
        yield _indented(f"and {len(found.findings) - top} more: --top {len(found.findings)}", "dim")


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(plain(text, style), (0, 0, 0, 3), expand=False)


def _money(findings: Sequence[Finding]) -> str:
    """The sum of what is known, marked as a lower bound when something is not."""
    unpriced = sum(each.unpriced for each in findings)
    if unpriced and unpriced == sum(each.calls for each in findings):
        return "unknown dollars"
    known = sum((each.dollars for each in findings), Decimal(0))
    return f"{'≥ ' if unpriced else ''}{dollars(known)}"


def _share(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def _sum(found: Difference) -> str:
    cause, detail = found.found.cause, found.found.detail
    held = f"a cache with the first holds at least {found.common:.1%} of the second"
    if cause is None and not found.found.related:
        return f"two conversations; {held}"
    if cause is not None and cause.kind == "side_call":
        return f"two conversations with other system prompts, in one session a side call; {held}"
    if cause is None:
        return f"the second goes on from the first; {held}"
    return f"{cause.told(detail)}; {held}"


def _tier_json(tier: TierWarmth) -> dict[str, Any]:
    money = {"usd": f"{tier.dollars:f}", "output_usd": f"{tier.output_dollars:f}"}
    shares = {"by_token": tier.by_token, "possible": tier.possible}
    plainly = {n: v for n, v in asdict(tier).items() if n not in {"dollars", "output_dollars"}}
    return {**plainly, **shares, **money}


def _finding_json(each: Finding) -> dict[str, Any]:
    return {
        "cause": each.cause.key,
        "said": each.said,
        "advice": each.cause.advice,
        "fork": each.cause.fork,
        "tiers": list(each.tiers),
        "calls": each.calls,
        "tokens": each.tokens,
        "usd": f"{each.dollars:f}",
        "unpriced": each.unpriced,
        "before": each.before,
        "after": each.after,
    }
