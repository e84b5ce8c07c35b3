"""cascade alerts list | test."""

import asyncio
import time
from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.console import Console

from cascade.errors import ConfigError
from serving.alerts import log
from serving.alerts.address import webhook_address
from serving.alerts.webhook import Webhook, WebhookError
from serving.commands.log import audit_database
from serving.commands.options import config_option, json_option, load
from serving.store.formats import columns, moment, plain


@click.group()
def alerts() -> None:
    """See what somebody should look at, and try the webhook."""


@alerts.command("list")
@click.option(
    "-n", "limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most."
)
@config_option
@json_option
def list_alerts(path: Path | None, limit: int, as_json: bool) -> None:
    """Print the latest alerts, the latest first."""
    with audit_database(path) as engine:
        found = log.latest(engine, limit)
    if as_json:
        click.echo(orjson.dumps([asdict(each) for each in found]).decode())
        return
    if not found:
        click.echo("no alerts")
        return
    table = columns("at (UTC)", "kind", "subject", "delivered", "message")
    for each in found:
        delivered = "no" if each.delivered_at is None else moment(each.delivered_at)[:19]
        told = (moment(each.created_at)[:19], each.kind, each.subject, delivered, each.message)
        table.add_row(*map(plain, told))
    Console().print(table)


@alerts.command("test")
@config_option
def try_webhook(path: Path | None) -> None:
    """Send a made-up alert to the webhook; nothing is kept of it."""
    address = webhook_address(load(path))
    if address is None:
        raise ConfigError("there is no webhook to try: state alerts.webhook", param="alerts")
    alert = log.Alert(
        id=0,
        created_at=time.time(),
        kind="test",
        subject="webhook",
        message="this is a test, and nothing is wrong",
        details={},
        delivered_at=None,
    )
    try:
        asyncio.run(Webhook(address, pauses_seconds=(0.0,)).send(alert))
    except WebhookError as error:
        raise ConfigError(f"the webhook failed: {error}", param="alerts.webhook") from None
    click.echo("the webhook took it")
