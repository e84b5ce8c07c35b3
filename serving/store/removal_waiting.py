"""Takes what is removed from the audit log out of its spool as well.

Rows wait there for the database, or for the request that they belong to, and what no database took
is kept there for somebody to look at: lines that nothing else would ever take away.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Engine, select

from serving.store.removal import Removal
from serving.store.spool import Spool
from serving.store.tables import requests

_ASKED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Waiting:
    """What was found in a spool.

    Attributes:
        lines: that go.
        unreadable: lines set aside that tell nobody whose they are, and stay.
    """

    lines: int
    unreadable: int


def waiting(engine: Engine, spool: Spool, removal: Removal) -> Waiting:
    """What would go."""
    return _sifted(engine, spool, removal, dry=True)


def remove_waiting(engine: Engine, spool: Spool, removal: Removal) -> Waiting:
    """Take it out. To be done first: what a service takes up meanwhile is in the log then.

    Raises:
        OSError: a file of the spool cannot be written.
    """
    return _sifted(engine, spool, removal, dry=False)


def _sifted(engine: Engine, spool: Spool, removal: Removal, *, dry: bool) -> Waiting:
    own, others = set[str](), set[str]()

    def look(line: bytes) -> bool:
        value = _read(line)
        if value is not None and not _goes(value, removal, frozenset()):
            others.update(_requests(value))
        elif value is not None and "feedback" not in value:
            own.update(_requests(value))  # a word may be on a request of somebody else
        return True

    spool.sift(look)
    ids = own | set(_known(engine, removal, others - own))
    found, unreadable = set[bytes](), set[bytes]()

    def keep(line: bytes) -> bool:
        if (value := _read(line)) is None:
            unreadable.add(line)
        elif _goes(value, removal, ids):
            found.add(line)
            return dry
        return True

    spool.sift(keep)
    return Waiting(len(found), len(unreadable))


def _read(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _goes(value: Mapping[str, Any], removal: Removal, ids: AbstractSet[str]) -> bool:
    if not ids.isdisjoint(_requests(value)):
        return True
    try:
        if "feedback" in value:
            return removal.says(value["feedback"])
        return "late" not in value and removal.asks(value)
    except (KeyError, TypeError, ValueError):
        return False  # set aside for what it lacks


def _requests(value: Mapping[str, Any]) -> Iterator[str]:
    """The requests that a line is about."""
    said, late = value.get("feedback"), value.get("late")
    parts = [said] if isinstance(said, dict) else late if isinstance(late, list) else []
    yield from (str(part.get("request_id")) for part in parts if isinstance(part, dict))
    if not parts and isinstance(value.get("id"), str):
        yield value["id"]


def _known(engine: Engine, removal: Removal, ids: AbstractSet[str]) -> Iterator[str]:
    """Which of the requests go, as the log knows them."""
    with engine.connect() as connection:
        asked = sorted(ids)
        for first in range(0, len(asked), _ASKED_AT_ONCE):
            some = asked[first : first + _ASKED_AT_ONCE]
            which = select(requests.c.id).where(removal.which, requests.c.id.in_(some))
            yield from connection.scalars(which)
