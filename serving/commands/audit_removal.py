"""cascade audit prune | delete."""

import getpass
import time
from pathlib import Path

import click
from rich.console import Console
from sqlalchemy import Engine

from cascade.errors import AuditError
from serving.commands.log import audit_database
from serving.commands.options import config_option, load
from serving.commands.progress import counting
from serving.schemas import bounded
from serving.store.keys import VARIABLE, audit_keys
from serving.store.pruning import DAY_SECONDS
from serving.store.removal import Removal, Removed, remove


@click.command()
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    help="Remove requests older than that; default audit.retention_days.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many that are.")
@config_option
def prune(path: Path | None, days: float | None, dry_run: bool) -> None:
    """Remove requests that are older than they may be, with their attempts and their feedback.

    The sums behind `cascade audit stats` stay.
    """
    kept = load(path).config.audit.retention_days if days is None else days
    if kept is None:
        raise click.UsageError("rows are kept for ever here: say --days, or set retention_days")
    with audit_database(path) as engine:
        removal = Removal.before(time.time() - kept * DAY_SECONDS)
        number = removal.number(engine)
        if dry_run:
            click.echo(f"{number:,} requests are older than {kept:g} days")
            return
        _report(_removed(engine, removal, number))


@click.command()
@click.option("--tenant", help="Everything of this tenant.")
@click.option("--user", help="Everything that was asked in this user's name.")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@config_option
def delete(path: Path | None, tenant: str | None, user: str | None, yes: bool) -> None:
    """Remove all requests of a tenant, or of a user, with their attempts and their feedback.

    With both, only those of that tenant's user. What still waits in the spool of a running service
    is not there yet: run it again after a minute. That something was removed is noted, and of what
    no more than the tenant's name or a hash of the user's.
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
        number = removal.number(engine)
        if not yes:
            click.confirm(f"Remove {number:,} requests for good?", abort=True)
        _report(_removed(engine, removal, number))


def _removed(engine: Engine, removal: Removal, number: int) -> Removed:
    def counted(requests: int) -> bool:
        done(requests)
        return True

    with counting(Console(stderr=True), "requests", number) as done:
        try:
            return remove(
                engine, removal, who=getpass.getuser(), keys=audit_keys(), going_on=counted
            )
        except PermissionError as error:
            raise AuditError(f"{error}: set {VARIABLE}") from None


def _report(gone: Removed) -> None:
    click.echo(
        f"removed {gone.requests:,} requests, {gone.attempts:,} attempts and {gone.feedback:,} "
        "words of feedback"
    )
