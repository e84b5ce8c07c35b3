"""cascade cache breakeven: from how many requests on writing a prefix to a cache pays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import orjson

from cascade.cache_economics import (
    Batch,
    PrefixRates,
    break_even,
    in_parallel,
    in_sequence,
    prewarmed,
    requests_that_pay,
    uncached,
)
from cascade.errors import ConfigError
from cascade.pricing import MILLION
from serving.commands.options import config_option, json_option, load, wire

ONE = Decimal(1)


class Multiple(click.FloatRange):
    """A price as a multiple of another: a number, and not below zero."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; infinity and what is no number are refused."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


MULTIPLE = Multiple(min=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """One way of keeping a prefix.

    Attributes:
        label: what it is called.
        write: price of a written token over that of a computed one.
        read: the same of a token that is read.
        fresh: dollars per million computed tokens; None when only the ratios are known.
        source: where the prices are from.
    """

    label: str
    write: Decimal
    read: Decimal
    fresh: Decimal | None = None
    source: str | None = None


@click.command()
@click.argument("tier", required=False)
@click.option("--write", type=MULTIPLE, help="Instead of TIER: price of a write, as a multiple.")
@click.option("--read", type=MULTIPLE, help="Instead of TIER: price of a read, as a multiple.")
@click.option("--prefix", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--suffix", type=click.IntRange(0), default=200, show_default=True)
@click.option("--requests", type=click.IntRange(1), default=100, show_default=True)
@json_option
@config_option
def breakeven(path: Path | None, tier: str | None, as_json: bool, **asked: Any) -> None:
    """Say from how many requests on a cache write pays, by the prices of TIER.

    Without TIER, --write and --read give the prices of a written and of a read token as multiples
    of the input price, e.g. 1.25 and 0.1. Below it, what so many requests would cost that share a
    prefix and have a suffix of their own each (in tokens).
    """
    batch = Batch(prefix=asked["prefix"], suffix=asked["suffix"], requests=asked["requests"])
    write, read = asked["write"], asked["read"]
    if tier is not None and (write is not None or read is not None):
        raise click.UsageError("give TIER, or --write and --read")
    if tier is not None:
        ways = _of_tier(path, tier, batch)
    elif write is None or read is None:
        raise click.UsageError("give a TIER of the configuration, or --write and --read")
    else:
        ways = [Priced(label="written", write=Decimal(str(write)), read=Decimal(str(read)))]
    if as_json:
        report = [_report(way, batch) for way in ways]
        click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    for way in ways:
        click.echo("\n".join(_told(way, batch)))


def _of_tier(path: Path | None, name: str, batch: Batch) -> Sequence[Priced]:
    """The ways that a tier's price card has of keeping a prefix, each with its price once."""
    file = load(path)
    tiers = wire(file).tiers
    if name not in tiers:
        raise ConfigError(f"there is no tier {name!r}; there are: {', '.join(tiers)}")
    card = tiers[name].prices
    if card is None:
        raise file.explain(
            ConfigError("without a price nothing can be reckoned", param=f"tiers.{name}")
        )
    rates = card.rates_for(batch.prefix + batch.suffix)
    if rates.cache_read is None or not rates.input:
        raise file.explain(
            ConfigError(
                "the price has no input rate, or none for reading the cache, to compare with",
                param=f"tiers.{name}.price",
            )
        )
    by_rate: dict[Decimal, list[str]] = {}
    for ttl, rate in rates.cache_write.items():
        by_rate.setdefault(rate, []).append(ttl)
    by_rate = by_rate or {rates.input: []}
    return [
        Priced(
            label=f"written for {' or '.join(ttls)}" if ttls else "kept without a price for it",
            write=rate / rates.input,
            read=rates.cache_read / rates.input,
            fresh=rates.input,
            source=f"{name}{f', {card.source}' if card.source else ''}",
        )
        for rate, ttls in by_rate.items()
    ]


def _costs(way: Priced, batch: Batch) -> Mapping[str, tuple[str, Decimal]]:
    """What the batch costs in computed tokens, by how it is sent, with the sum written out."""
    rates = PrefixRates(fresh=ONE, read=way.read, write=way.write)
    n, prefix, w, r = batch.requests, f"{batch.prefix:,}", _number(way.write), _number(way.read)
    own = f"{n} * {batch.suffix:,}"
    return {
        "uncached": (f"{n} * ({prefix} + {batch.suffix:,})", uncached(batch, rates)),
        "in sequence": (
            f"{prefix} * {w} + {n - 1} * {prefix} * {r} + {own}",
            in_sequence(batch, rates),
        ),
        "all at once": (f"{n} * {prefix} * {w} + {own}", in_parallel(batch, rates)),
        "prewarmed": (f"{prefix} * {w} + {n} * {prefix} * {r} + {own}", prewarmed(batch, rates)),
    }


def _told(way: Priced, batch: Batch) -> list[str]:
    w, r = _number(way.write), _number(way.read)
    of = f" ({way.source})" if way.source else ""
    above = break_even(write=way.write, read=way.read)
    if above is None:
        verdict = f"  reading is no cheaper than computing (r = {r}): it never pays"
    else:
        verdict = (
            f"  pays where N > (w - r) / (1 - r) = ({w} - {r}) / (1 - {r}) = {above:.3f}: from "
            f"{requests_that_pay(write=way.write, read=way.read)} requests on"
        )
    lines = [f"{way.label}{of}: w = {w}, r = {r} of the input price", verdict]
    lines.append(
        f"  {batch.requests} requests, {batch.prefix:,} tokens alike and {batch.suffix:,} of their "
        "own each, in computed tokens:"
    )
    costs = _costs(way, batch)
    width = max(len(written) for written, _ in costs.values())
    digits = max(len(f"{cost:,.0f}") for _, cost in costs.values())
    for name, (written, cost) in costs.items():
        dollars = "" if way.fresh is None else f"   ${cost * way.fresh / MILLION:.6g}"
        lines.append(f"    {name:<12} {written:<{width}} = {cost:>{digits},.0f}{dollars}")
    return lines


def _report(way: Priced, batch: Batch) -> dict[str, Any]:
    above = break_even(write=way.write, read=way.read)
    costs = {name: cost for name, (_, cost) in _costs(way, batch).items()}
    return {
        "label": way.label,
        "source": way.source,
        "write": float(way.write),
        "read": float(way.read),
        "above": None if above is None else float(above),
        "pays_from": requests_that_pay(write=way.write, read=way.read),
        "computed_tokens": {name: float(cost) for name, cost in costs.items()},
        "dollars": None
        if way.fresh is None
        else {name: f"{cost * way.fresh / MILLION:f}" for name, cost in costs.items()},
    }


def _number(value: Decimal) -> str:
    return f"{float(value):.4g}"
