"""How the commands that override the configuration reach it: in the database, or by the service.

The database is where every worker looks, so no service need run, and none need be reachable. By
--url the change goes through a running service, which may be on another machine.
"""

import functools
import getpass
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import click
import orjson
from sqlalchemy import Engine

from cascade.errors import CascadeError, RequestError
from serving.admin.access import WHO, admin_key
from serving.commands.log import audit_database
from serving.commands.options import config_option, json_option, load
from serving.commands.units import SPAN
from serving.overrides import store
from serving.overrides.apply import fitting
from serving.overrides.changes import Changes, Note
from serving.overrides.views import (
    experiments_json,
    ground_in,
    override_json,
    overrides_json,
    shapes_in,
)

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is said with every change.

    Attributes:
        seconds: until it ends by itself; None: it does not.
        expected: the version that it is made on; None: any.
    """

    who: str
    why: str
    seconds: float | None = None
    expected: int | None = None


class Door(Protocol):
    """Where overrides are seen and made; all of it in the shapes of /admin."""

    def experiments(self) -> list[dict[str, Any]]:
        """Every experiment."""
        ...

    def overrides(self, subject: str | None = None) -> dict[str, Any]:
        """What is in force, and the history, of one subject or of all."""
        ...

    def change(self, name: str, changes: Mapping[str, Any], said: Said) -> int:
        """Change an experiment; the version."""
        ...

    def restore(self, name: str, said: Said) -> int:
        """Give it back to the file."""
        ...

    def pin(self, tier: str | None, said: Said) -> int:
        """Pin a tier; None ends it."""
        ...

    def drain(self, tier: str, said: Said, *, off: bool) -> int:
        """Drain a tier, or end it."""
        ...


@contextmanager
def door(path: Path | None, url: str | None) -> Iterator[Door]:
    """Through a running service if there is a URL, otherwise into the database of the file.

    Raises:
        ConfigError: the configuration is wrong, or the database is not ready.
        AuditError: it cannot be used.
    """
    if url is not None:
        yield Service(url)
        return
    with audit_database(path) as engine:
        yield Database(engine, path)


class Database:
    """The database, with what the configuration file says."""

    def __init__(self, engine: Engine, path: Path | None) -> None:
        config = load(path).config
        self._engine = engine
        self._ground = ground_in(config)
        self._shapes = shapes_in(config)
        self._changes = Changes(engine, self._ground)

    def experiments(self) -> list[dict[str, Any]]:
        """Every experiment."""
        state, versions = store.state(self._engine), store.versions(self._engine)
        return experiments_json(self._ground, self._shapes, state, versions)

    def overrides(self, subject: str | None = None) -> dict[str, Any]:
        """What is in force, and the history."""
        state, version = store.state(self._engine), store.latest(self._engine)
        past = [override_json(each) for each in store.history(self._engine, subject)]
        left_out = fitting(self._ground, state).doubts
        return overrides_json(state, version, left_out) | {"history": past}

    def change(self, name: str, changes: Mapping[str, Any], said: Said) -> int:
        """Change an experiment."""
        return self._changes.experiment(name, changes, _note(said))

    def restore(self, name: str, said: Said) -> int:
        """Give it back to the file."""
        return self._changes.restore(name, _note(said))

    def pin(self, tier: str | None, said: Said) -> int:
        """Pin a tier, or end it."""
        note = _note(said)
        return self._changes.unpin(note) if tier is None else self._changes.pin(tier, note)

    def drain(self, tier: str, said: Said, *, off: bool) -> int:
        """Drain a tier, or end it."""
        work = self._changes.undrain if off else self._changes.drain
        return work(tier, _note(said))


class Service:
    """The admin API of a running service; the key is the environment's."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise RequestError(f"--url: {url!r} does not begin with http:// or https://")
        self._url = url.rstrip("/").removesuffix("/v1")

    def experiments(self) -> list[dict[str, Any]]:
        """Every experiment."""
        found: list[dict[str, Any]] = self._ask("GET", "experiments")["experiments"]
        return found

    def overrides(self, subject: str | None = None) -> dict[str, Any]:
        """What is in force, and the history."""
        asked = "" if subject is None else f"?subject={urllib.parse.quote(subject)}"
        return self._ask("GET", f"overrides{asked}")

    def change(self, name: str, changes: Mapping[str, Any], said: Said) -> int:
        """Change an experiment."""
        return self._tell("PUT", f"experiments/{name}", said, **changes)

    def restore(self, name: str, said: Said) -> int:
        """Give it back to the file."""
        return self._tell("DELETE", f"experiments/{name}", said)

    def pin(self, tier: str | None, said: Said) -> int:
        """Pin a tier, or end it."""
        if tier is None:
            return self._tell("DELETE", "pin", said)
        return self._tell("PUT", "pin", said, tier=tier)

    def drain(self, tier: str, said: Said, *, off: bool) -> int:
        """Drain a tier, or end it."""
        return self._tell("DELETE" if off else "PUT", f"drain/{tier}", said)

    def _tell(self, method: str, path: str, said: Said, **more: Any) -> int:
        body = {"why": said.why, **more}
        if said.seconds is not None:
            body["for_seconds"] = said.seconds
        if said.expected is not None:
            body["expected_version"] = said.expected
        version: int = self._ask(method, urllib.parse.quote(path), body, said.who)["version"]
        return version

    def _ask(self, method: str, path: str, body: Any = None, who: str = "") -> dict[str, Any]:
        key = admin_key()
        headers = {"content-type": "application/json"}
        headers |= {"authorization": _utf8(f"Bearer {key}")} if key else {}
        headers |= {WHO: _utf8(who)} if who else {}
        request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
            f"{self._url}/admin/{path}",
            data=None if body is None else orjson.dumps(body),
            headers=headers,
            method=method,
        )
        try:
            with _opener().open(request, timeout=_TIMEOUT_SECONDS) as answer:
                found: dict[str, Any] = orjson.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise CascadeError(_message(error)) from None
        except (OSError, orjson.JSONDecodeError) as error:
            why = getattr(error, "reason", error)
            raise CascadeError(f"{self._url} is no Cascade that can be reached: {why}") from None
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options that every command has which changes something."""

    path: Path | None
    url: str | None
    who: str | None
    why: str | None
    seconds: float | None
    expected: int | None
    as_json: bool

    @property
    def said(self) -> Said:
        """What is said with the change.

        Raises:
            RequestError: the time is too long, or there is no reason and nobody to ask for one.
        """
        if self.seconds is not None and not 0 < self.seconds <= store.LONGEST_SECONDS:
            raise RequestError(
                f"--for: more than 0 and at most {store.LONGEST_DAYS}d; leave it out for no end"
            )
        why = self.why
        if why is None:
            if not sys.stdin.isatty():
                raise RequestError("--why: a change needs a reason, for the record")
            why = str(click.prompt("Why", err=True))
        return Said(
            who=self.who or _whoever(), why=why, seconds=self.seconds, expected=self.expected
        )

    def door(self) -> AbstractContextManager[Door]:
        """Where the change is made."""
        return door(self.path, self.url)

    def report(self, version: int, what: str) -> None:
        """Say what was done."""
        if self.as_json:
            click.echo(orjson.dumps({"version": version}).decode())
            return
        follows = "every worker follows within two seconds"
        click.secho(f"{what} (version {version}); {follows}", fg="green")


url_option: Callable[[Any], Any] = click.option(
    "--url",
    help="Through the service at this address; its key is taken from CASCADE_ADMIN_KEY.",
)


def changing(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that may change something; it gets them as one `Asked`."""
    shared = [each.name for each in fields(Asked)]

    @functools.wraps(command)
    def whole(**given: Any) -> None:
        command(Asked(**{name: given.pop(name) for name in shared}), **given)

    for option in (
        json_option,
        config_option,
        url_option,
        click.option("--expect", "expected", type=click.IntRange(0), metavar="VERSION",
                     help="Only if that is still the version of what is changed."),
        click.option("--who", help="For whom; whoever runs this when it is not said."),
        click.option("--why", help="The reason, for the record; asked for when it is missing."),
        click.option("--for", "seconds", type=SPAN,
                     help="It ends by itself after 30m, 2h, 1d; 30d at most."),
    ):  # fmt: skip
        option(whole)
    return whole


def _note(told: Said) -> Note:
    until = None if told.seconds is None else time.time() + told.seconds
    return Note(who=told.who, why=told.why, until=until, expected=told.expected)


def _whoever() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        user = "someone"
    return f"{user}@{socket.gethostname()}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The key is for the address that was given and goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """Take it as the answer."""


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects)


def _utf8(text: str) -> str:
    """As a header's text, of which each character is sent as one byte."""
    printable = "".join(c for c in text if c.isprintable())
    return printable.encode().decode("latin-1")


def _message(error: urllib.error.HTTPError) -> str:
    if where := error.headers.get("location"):
        return f"the service answered {error.code} and points to {where}: give that as --url"
    try:
        told = orjson.loads(error.read())["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"the service answered {error.code}"
    return str(told)
