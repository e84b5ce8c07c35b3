"""cascade audit tail | show | stats."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from sqlalchemy import Engine

from cascade.audit import AuditRecord
from serving.commands.options import audit_url, config_option, json_option
from serving.store import present, present_stats, queries, schema, stats
from serving.store.database import engine_for, faults_of

FOLLOW_SECONDS = 1.0
LOOK_BACK_SECONDS = 900.0
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@click.group()
def audit() -> None:
    """Read the audit log."""


@audit.command()
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many requests at most.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on printing new requests; Ctrl-C ends it.")
@click.option(
    "--status",
    type=click.Choice(["ok", "degraded", "cancelled", "error"]),
    help="Only requests that ended so.",
)
@click.option("--policy", help="Only this policy.")
@click.option("--arm", help="Only this arm.")
@click.option("--tier", help="Only answers of this tier.")
@click.option("--session", help="Only this session.")
@config_option
@json_option
def tail(path: Path | None, limit: int, follow: bool, as_json: bool, **only: str | None) -> None:
    """Print the latest requests, the latest at the end."""
    filters = queries.Filters(**only)
    with _database(path) as engine:
        found = queries.tail(engine, limit, filters=filters)
        _print(engine, found, as_json)
        if follow:
            for new in _following(engine, found, filters):
                _print(engine, new, as_json)


@audit.command()
@click.argument("request_id")
@config_option
@json_option
def show(path: Path | None, request_id: str, as_json: bool) -> None:
    """Explain one request: each attempt, why it was made, and what came of it.

    REQUEST_ID is the x-cascade-request-id of an answer; its beginning is enough.
    """
    with _database(path) as engine:
        record = queries.show(engine, request_id)
        said = queries.feedback_on(engine, [record])[record.id]
    if as_json:
        _json(present.request_json(record, said))
    else:
        Console().print(present.request_view(record, said))


@audit.command("stats")
@click.option("--since", default="24h", show_default=True, help="How far back: 30m, 24h, 7d, all.")
@config_option
@json_option
def statistics(path: Path | None, since: str, as_json: bool) -> None:
    """Sum up cost, escalation, judges and latency."""
    with _database(path) as engine:
        found = stats.stats(engine, since=_since(since))
    if as_json:
        _json(present_stats.stats_json(found))
    else:
        Console().print(present_stats.stats_view(found))


@contextmanager
def _database(path: Path | None) -> Iterator[Engine]:
    """The audit database; one that cannot be used or is not ready is a sentence."""
    url = audit_url(path)
    schema.require_head(url)
    engine = engine_for(url)
    try:
        with faults_of(url):
            yield engine
    finally:
        engine.dispose()


def _following(
    engine: Engine, seen: list[AuditRecord], filters: queries.Filters
) -> Iterator[list[AuditRecord]]:
    """New requests as they are stored, until interrupted.

    A request is stored when it ends but sorts by its beginning, so each look goes some time back.
    """
    horizon = time.time() - LOOK_BACK_SECONDS
    old = queries.tail(engine, 1000, after=horizon, filters=filters)
    known = {record.id: record.created_at for record in (*seen, *old)}
    while True:
        time.sleep(FOLLOW_SECONDS)
        horizon = time.time() - LOOK_BACK_SECONDS
        found = queries.tail(engine, 1000, after=horizon, filters=filters)
        new = [record for record in found if record.id not in known]
        known = {id_: at for id_, at in known.items() if at > horizon}
        known |= {record.id: record.created_at for record in new}
        if new:
            yield new


def _print(engine: Engine, records: list[AuditRecord], as_json: bool) -> None:
    if as_json:
        said = queries.feedback_on(engine, records)
        for record in records:
            _json(present.request_json(record, said[record.id]), lines=True)
    elif records:
        Console().print(present.tail_table(records))
    else:
        click.echo("no requests match; without any yet, the README has one to paste")


def _since(text: str) -> float | None:
    if text == "all":
        return None
    if not (match := re.fullmatch(r"(\d+)([smhd])", text)):
        raise click.BadParameter("write 30m, 24h, 7d or all", param_hint="--since")
    return time.time() - int(match[1]) * UNITS[match[2]]


def _json(value: Any, *, lines: bool = False) -> None:
    click.echo(orjson.dumps(value, option=0 if lines else orjson.OPT_INDENT_2).decode())
