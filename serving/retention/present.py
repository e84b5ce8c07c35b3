"""What keeping prompts warm is worth, for people in 100 columns, and as JSON for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType

from serving.doctor.words import gap
from serving.retention.worth import Holding, Pings, Retention, TtlCost
from serving.store.formats import NONE, columns, dollars, millions, percent, plain

_PIECES = {"shared": "tools and system prompts", "conversation": "conversations"}


def retention_view(found: Sequence[Retention]) -> RenderableType:
    """Tier by tier: times to live, pings, and how long to hold a run."""
    if not any(each.calls for each in found):
        return plain("No calls in that time: widen --since, or send a request first.", "dim")
    return Group(*(part for each in found for part in _tier(each)))


def retention_json(found: Sequence[Retention]) -> list[dict[str, Any]]:
    """The same for programs; dollars are decimal strings."""
    return [
        {
            "tier": each.tier,
            "calls": each.calls,
            "unreported": each.unreported,
            "prompt_tokens": each.prompt_tokens,
            "ttls": [_plain(asdict(ttl)) for ttl in each.ttls],
            "cheapest_seconds": each.cheapest.seconds if each.cheapest else None,
            "cheapest_with_pings": _pinged(each),
            "pings": [_plain(asdict(ping)) for ping in each.pings],
            "holding": _plain(asdict(each.holding)),
        }
        for each in found
    ]


def _pinged(found: Retention) -> dict[str, Any] | None:
    if found.pinged is None:
        return None
    ping, comes_to = found.pinged
    return _plain({"seconds": ping.seconds, "piece": ping.piece, "dollars_per_million": comes_to})


def _tier(found: Retention) -> Iterator[RenderableType]:
    yield plain(f"{found.tier}: {found.calls:,} calls, {found.prompt_tokens:,} tokens", "bold")
    if found.unreported:
        yield plain(f"{found.unreported:,} more calls reported no tokens and are left out", "dim")
    yield _ttls(found)
    yield plain(_choice(found))
    for ping in found.pings:
        yield plain(_ping(ping))
    if found.pinged:
        ping, comes_to = found.pinged
        yield plain(
            f"cheaper still: {gap(ping.seconds)} with pings of {_PIECES[ping.piece]}, "
            f"{dollars(comes_to)} per million requests"
        )
    for line in _holding(found):
        yield plain(line)
    yield plain("")


def _ttls(found: Retention) -> RenderableType:
    numbers = ("read", "written", "share read", "read at", "write at", "per million requests")
    table = columns("kept for", right=numbers)
    for ttl in found.ttls:
        table.add_row(
            gap(ttl.seconds) + ("" if ttl.offered else " (not offered)"),
            millions(ttl.read_tokens),
            millions(ttl.written_tokens),
            percent(ttl.read_tokens, ttl.read_tokens + ttl.written_tokens),
            _price(ttl.read_price),
            _price(ttl.write_price),
            dollars(ttl.dollars_per_million),
        )
    return table


def _choice(found: Retention) -> str:
    best = found.cheapest
    if best is None:
        cache = found.terms.cache
        if cache is not None and cache.kind != "ttl":
            return "its servers keep prompts as long as there is room: no time to live to choose"
        return "what a time to live costs is not known: the tier has no price, or no cache, stated"
    return f"cheapest: {gap(best.seconds)}, {_formula(best, found.calls)}"


def _formula(ttl: TtlCost, calls: int) -> str:
    return (
        f"({ttl.read_tokens:,} x {_price(ttl.read_price)} + {ttl.written_tokens:,} x "
        f"{_price(ttl.write_price)}) / {calls:,} = {dollars(ttl.dollars_per_million)} "
        "per million requests"
    )


def _ping(ping: Pings) -> str:
    told = (
        f"pings of {_PIECES[ping.piece]} every {gap(ping.seconds)}: one for each that would expire "
        f"costs {dollars(ping.first_costs)} and saves {dollars(ping.first_saves)} per million "
        "requests"
    )
    if not ping.times:
        return f"{told}; they do not pay"
    times = "once" if ping.times == 1 else f"up to {ping.times} times in a row"
    return f"{told}; best {times}, which saves {dollars(ping.saves_per_million)} in all"


def _holding(found: Retention) -> Iterator[str]:
    held, speeds, cache = found.holding, found.terms.speeds, found.terms.cache
    if not held.number:
        yield "no results of tools in the log"
        return
    yield (
        f"results of tools came {held.number:,} times: half within {_gap(held.p50)}, 90 % within "
        f"{_gap(held.p90)}, 99 % within {_gap(held.p99)}"
    )
    if held.break_even is not None and speeds and cache:
        yield (
            f"holding a run pays up to {cache.capacity_tokens:,} tokens x (1/{speeds.prefill:,f} - "
            f"1/{speeds.cached:,f}) s = {gap(held.break_even)}: {_share(held)} come within that"
        )
    elif held.share is not None and cache and cache.ttl_seconds:
        yield f"{_share(held)} come within the tier's time to live of {gap(cache.ttl_seconds)}"
    else:
        yield (
            "how long holding pays is not known: state the tier's price by GPU hour with its "
            "speeds, and its cache's capacity_tokens"
        )


def _share(held: Holding) -> str:
    return NONE if held.share is None else f"{held.share:.1%}"


def _gap(seconds: float | None) -> str:
    return NONE if seconds is None else gap(seconds)


def _price(rate: Decimal | None) -> str:
    return "unknown" if rate is None else f"${float(rate):.4g}"


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"{v.normalize():f}" if isinstance(v, Decimal) else v for name, v in values.items()
    }
