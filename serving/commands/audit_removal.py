"""cascade audit prune | delete."""

import contextlib
import getpass
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import click
import orjson
from rich.console import Console
from sqlalchemy import Engine

from cascade.errors import AuditError
from serving.audit_wiring import spool_of
from serving.commands.log import audit_database
from serving.commands.options import config_option, json_option, load
from serving.commands.progress import counting, stepping
from serving.schemas import bounded
from serving.store.keys import VARIABLE, audit_keys
from serving.store.pruning import DAY_SECONDS
from serving.store.removal import Removal, Removed, remove
from serving.store.removal_waiting import Waiting, remove_waiting, waiting
from serving.store.spool import Spool
from serving.store.vacuum import TABLES, vacuum

_dry_run = click.option("--dry-run", is_flag=True, help="Only say how many that are.")
_vacuum = click.option(
    "--vacuum",
    "rewrite",
    is_flag=True,
    help="Write the tables anew afterwards: what was removed is in no file of the database then, "
    "and its room is free. Nobody can use the log meanwhile; a running service keeps its rows.",
)


def _number(_context: click.Context, _option: click.Parameter, given: float | None) -> float | None:
    """In PostgreSQL every time is before one that is no number."""
    if given is not None and math.isnan(given):
        raise click.BadParameter("it is no number")
    return given


@click.command()
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    callback=_number,
    help="Remove requests older than that; default audit.retention_days.",
)
@_dry_run
@_vacuum
@json_option
@config_option
def prune(
    *, path: Path | None, days: float | None, dry_run: bool, rewrite: bool, as_json: bool
) -> None:
    """Remove requests that are older than they may be, with their attempts and their feedback.

    The sums behind `cascade audit stats` stay.
    """
    file = load(path)
    kept = file.config.audit.retention_days if days is None else days
    if kept is None:
        raise click.UsageError("rows are kept for ever here: say --days, or set retention_days")
    removal = Removal.before(time.time() - kept * DAY_SECONDS)
    with audit_database(path) as engine:
        work = _Work(engine, spool_of(file), removal, as_json=as_json)
        if dry_run:
            work.tell(f"are older than {kept:g} days")
        else:
            work.do(rewrite=rewrite)


@click.command()
@click.option("--tenant", help="Everything of this tenant.")
@click.option("--user", help="Everything that was asked in this user's name.")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@_dry_run
@_vacuum
@json_option
@config_option
def delete(
    *,
    path: Path | None,
    tenant: str | None,
    user: str | None,
    yes: bool,
    dry_run: bool,
    rewrite: bool,
    as_json: bool,
) -> None:
    """Remove all requests of a tenant, or of a user, with their attempts and their feedback.

    With both, only those of that tenant's user. What waits in the spool or was set aside there goes
    too; what a running service has only in its memory is not there yet: run it again after a
    minute. That something was removed is noted, and of what no more than the tenant's name or a
    hash of the user's.
    """
    # Long names are in the log as requests bring them there.
    whose = None if tenant is None else bounded(tenant)
    if user is not None:
        removal = Removal.of_user(bounded(user), whose)
    elif whose is not None:
        removal = Removal.of_tenant(whose)
    else:
        raise click.UsageError("say whose requests: --tenant or --user")
    with audit_database(path) as engine:
        work = _Work(engine, spool_of(load(path)), removal, as_json=as_json)
        if dry_run:
            work.tell("would be removed")
            return
        if work.found and not yes:
            click.confirm(f"Remove {work.found} for good?", abort=True, err=as_json)
        work.do(rewrite=rewrite)


class _Work:
    """One removal, from the log and from its spool.

    Args:
        engine: of the log.
        spool: of the service.
        removal: what is to go.
        as_json: how to tell of it.

    Attributes:
        found: what there is of it, in words; empty when there is nothing.
    """

    def __init__(self, engine: Engine, spool: Spool, removal: Removal, *, as_json: bool) -> None:
        self._engine, self._spool, self._removal = engine, spool, removal
        self._as_json = as_json
        self._number, self._aside = removal.number(engine), waiting(engine, spool, removal)
        self.found = ""
        if self._number or self._aside.lines:
            self.found = f"{self._number:,} requests{_lines(self._aside)}"

    def tell(self, what: str) -> None:
        """Say how much there is."""
        if self._as_json:
            _print({"requests": self._number, **_in_spool(self._aside)})
        else:
            click.echo(f"{self.found or '0 requests'} {what}")

    def do(self, *, rewrite: bool) -> None:
        """Remove it, and say how much went; a log with nothing of it is cleared of its sums."""
        try:
            aside = remove_waiting(self._engine, self._spool, self._removal)
        except OSError as error:
            raise AuditError(f"the spool {self._spool.folder} cannot be written: {error}") from None
        gone = self._removed()
        if self._as_json:
            _print({**asdict(gone), **_in_spool(aside)})
        else:
            click.echo(
                f"removed {gone.requests:,} requests, {gone.attempts:,} attempts and "
                f"{gone.feedback:,} words of feedback{_lines(aside)}"
            )
        if aside.unreadable:
            click.echo(
                f"{aside.unreadable:,} lines in {self._spool.folder} cannot be read, so nobody "
                "knows whose they are: look at its .bad and .tmp files",
                err=True,
            )
        if rewrite:
            with stepping(Console(stderr=True), "tables", len(TABLES)) as done:
                vacuum(self._engine, done)
        elif gone.requests and self._engine.name == "postgresql":
            click.echo(
                "PostgreSQL keeps what was removed in its files until the tables are written "
                "anew: --vacuum does that, in a quiet hour",
                err=True,
            )

    def _removed(self) -> Removed:
        with contextlib.ExitStack() as stack:
            done: Callable[[int], None] = lambda _: None  # noqa: E731 - where there is nothing to see
            if self._number:
                bar = counting(Console(stderr=True), "requests", self._number)
                done = stack.enter_context(bar)

            def counted(requests: int) -> bool:
                done(requests)
                return True

            try:
                return remove(
                    self._engine,
                    self._removal,
                    who=getpass.getuser(),
                    keys=audit_keys(),
                    going_on=counted,
                )
            except PermissionError as error:
                raise AuditError(f"{error}: set {VARIABLE}") from None


def _lines(aside: Waiting) -> str:
    return f" and {aside.lines:,} lines of the spool" if aside.lines else ""


def _in_spool(aside: Waiting) -> dict[str, int]:
    return {"spool_lines": aside.lines, "spool_unreadable": aside.unreadable}


def _print(value: dict[str, int]) -> None:
    click.echo(orjson.dumps(value).decode())
