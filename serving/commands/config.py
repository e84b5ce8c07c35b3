"""cascade config check | show."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import orjson

from cascade.pricing import PriceCard, Rates
from serving.commands.options import config_option, json_option, load, wire
from serving.store.database import shown


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
    if as_json:
        report: dict[str, Any] = {"ok": True, "file": str(file.path), "version": snapshot.version}
        report["warnings"] = list(snapshot.warnings)
        report["prices"] = {name: _prices(tier.prices) for name, tier in snapshot.tiers.items()}
        click.echo(orjson.dumps(report).decode())
        return
    click.secho(f"{file.path} can work (version {snapshot.version})", fg="green")
    for warning in snapshot.warnings:
        click.secho(f"  warning    {warning}", fg="yellow")
    for name, kind in snapshot.models:
        click.echo(f"  {kind:<10} {name}")
    for name, tier in snapshot.tiers.items():
        click.echo(f"  {'price':<10} {name}: {_said(tier.prices)}")


@config.command()
@config_option
def show(path: Path | None) -> None:
    """Print the configuration as it is understood, defaults filled in, passwords left out."""
    file = load(path)
    data = file.config.model_dump(mode="json")
    data["audit"]["url"] = shown(file.audit_url)
    click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())


def _said(card: PriceCard | None) -> str:
    """A price card in one line, in dollars per million tokens."""
    if card is None:
        return "none, so what its calls cost is unknown"
    longer = (f"; above {above} {_rates(rates)}" for above, rates in card.long_prompt_rates)
    return f"{_rates(card.rates)}{''.join(longer)} ($ per million tokens)"


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
