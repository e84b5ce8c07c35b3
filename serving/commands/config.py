"""cascade config check | show."""

from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import orjson

from cascade.caches import CacheCard
from cascade.errors import CascadeError
from cascade.pricing import PriceCard, Rates
from serving.alerts.address import shown_address, webhook_address
from serving.commands.experiment_show import told
from serving.commands.options import config_option, json_option, load, wire
from serving.commands.overriding import door
from serving.config import ConfigFile
from serving.store.database import shown, sqlite_file


@click.group()
def config() -> None:
    """Check or show the configuration."""


@config.command()
@config_option
@json_option
def check(path: Path | None, as_json: bool) -> None:
    """Say whether the configuration can work; the exit status is 1 when it cannot."""
    file = load(path)
    snapshot = wire(file)
    webhook_address(file)
    if as_json:
        report: dict[str, Any] = {"ok": True, "file": str(file.path), "version": snapshot.version}
        report["warnings"] = list(snapshot.warnings)
        tiers = snapshot.tiers
        report["prices"] = {name: _prices(tier.prices) for name, tier in tiers.items()}
        report["price_sources"] = {
            n: t.prices.source if t.prices else None for n, t in tiers.items()
        }
        report["caches"] = {n: asdict(t.cache) if t.cache else None for n, t in tiers.items()}
        click.echo(orjson.dumps(report).decode())
        return
    click.secho(f"{file.path} can work (version {snapshot.version})", fg="green")
    for warning in snapshot.warnings:
        click.secho(f"  warning    {warning}", fg="yellow")
    for name, kind in snapshot.models:
        click.echo(f"  {kind:<10} {name}")
    for name, tier in snapshot.tiers.items():
        click.echo(f"  {'price':<10} {name}: {_said(tier.prices)}")
    for name, tier in snapshot.tiers.items():
        click.echo(f"  {'cache':<10} {name}: {_kept(tier.cache)}")


@config.command()
@config_option
def show(path: Path | None) -> None:
    """Print the configuration as it is understood, defaults filled in, passwords left out.

    What overrides it at run time is said on standard error.
    """
    file = load(path)
    data = file.config.model_dump(mode="json")
    data["audit"]["url"] = shown(file.audit_url)
    if file.config.alerts is not None and file.config.alerts.webhook is not None:
        data["alerts"]["webhook"] = shown_address(file.config.alerts.webhook)
    click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    for line in _overrides(file, path):
        click.secho(line, fg="yellow", err=True)


def _overrides(file: ConfigFile, path: Path | None) -> list[str]:
    """What holds instead of the file while the service runs, as far as the database tells."""
    lying = sqlite_file(file.audit_url)
    if lying is not None and not lying.exists():
        return []  # nobody ever ran it
    try:
        with door(path, None) as to:
            return told(to.overrides())
    except CascadeError as error:
        return [f"what is overridden is not known: {error.message}"]


def _said(card: PriceCard | None) -> str:
    """A price card in one line, in dollars per million tokens."""
    if card is None:
        return "none, so what its calls cost is unknown"
    longer = (f"; above {above} {_rates(rates)}" for above, rates in card.long_prompt_rates)
    unit = "$ per million tokens" + (f", {card.source}" if card.source else "")
    return f"{_rates(card.rates)}{''.join(longer)} ({unit})"


def _kept(card: CacheCard | None) -> str:
    """A cache card in one line."""
    if card is None:
        return "none, or not known how it works"
    room = f"{card.capacity_tokens:,} tokens" if card.capacity_tokens else ""
    if card.kind == "blocks":
        return f"blocks of {card.block} tokens, room for {room or 'an unknown number of tokens'}"
    if card.kind == "slots":
        return f"the last prompt of {card.slots} slots" + (f", and {room} besides" if room else "")
    steps = f" in steps of {card.block}" if card.block > 1 else ""
    shortest = f"from {card.minimum_tokens:,} tokens on"
    return f"for {card.ttl_seconds:g} s after its last use, {shortest}{steps}"


def _rates(rates: Rates) -> str:
    return ", ".join(
        f"{name} {'unknown' if rate is None else f'{rate:.6g}'}" for name, rate in _named(rates)
    )


def _named(rates: Rates) -> list[tuple[str, Decimal | None]]:
    written = [(f"cache_write {ttl}", rate) for ttl, rate in rates.cache_write.items()]
    stated = [("input", rates.input), ("cache_read", rates.cache_read)]
    return [*stated, *written, ("output", rates.output)]


def _prices(card: PriceCard | None) -> list[dict[str, Any]] | None:
    """The same for machines: an entry for ordinary prompts, and one for each longer kind."""
    if card is None:
        return None
    tiers = [(0, card.rates), *card.long_prompt_rates]
    return [
        {"above": above} | {n: None if r is None else f"{r:f}" for n, r in _named(rates)}
        for above, rates in tiers
    ]
