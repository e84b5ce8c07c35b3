"""cascade audit tail | show | stats."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from sqlalchemy import Engine

from cascade.audit import AuditRecord
from serving.commands.log import audit_database, since_option
from serving.commands.options import config_option, json_option
from serving.store import present, present_stats, queries, stats
from serving.store.texts import texts

FOLLOW_SECONDS = 1.0
LOOK_BACK_SECONDS = 900.0


@click.command()
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
    with audit_database(path) as engine:
        found = queries.tail(engine, limit, filters=filters)
        _print(engine, found, as_json)
        if follow:
            for new in _following(engine, found, filters):
                _print(engine, new, as_json)


@click.command()
@click.argument("request_id")
@click.option("--prompt", is_flag=True, help="Print what was asked and answered, if it is kept.")
@config_option
@json_option
def show(path: Path | None, request_id: str, prompt: bool, as_json: bool) -> None:
    """Explain one request: each attempt, why it was made, and what came of it.

    REQUEST_ID is the x-cascade-request-id of an answer; its beginning is enough.
    """
    with audit_database(path) as engine:
        record = queries.show(engine, request_id)
        said = queries.feedback_on(engine, [record])[record.id]
    if prompt:
        _json(texts(record))
        return
    if as_json:
        _json(present.request_json(record, said))
    else:
        Console().print(present.request_view(record, said))


@click.command("stats")
@since_option
@config_option
@json_option
def statistics(path: Path | None, since: float | None, as_json: bool) -> None:
    """Sum up cost, escalation, judges and latency."""
    with audit_database(path) as engine:
        found = stats.stats(engine, since=since)
    if as_json:
        _json(present_stats.stats_json(found))
    else:
        Console().print(present_stats.stats_view(found))


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


def _json(value: Any, *, lines: bool = False) -> None:
    click.echo(orjson.dumps(value, option=0 if lines else orjson.OPT_INDENT_2).decode())
