"""Chains the rows of the audit log, so that one that was changed, removed or put in between shows.

Each process writes a chain of its own: its requests in the order in which they reached the
database, each with a hash of its own content and of the one before. The hashes are keyed, so that
who can write to the database and has no key cannot mend the chain behind a change. A head says how
far the chain goes, or the last rows could be cut off unseen; a gap says which rows were removed by
retention or on demand, and what they ended with.

A row's content is its request and the calls that were made to answer it. What comes after it, late
calls and feedback, may come, change and go, and is left out.
"""

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Double, Table, delete, insert, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from cascade.types import Kind
from serving.store.breathing import breathing
from serving.store.keys import AuditKeys
from serving.store.sums import Row
from serving.store.tables import attempts, chain_gaps, chain_heads, chain_links, requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The last link of a chain."""

    number: int
    hash: str


class Chain:
    """One process's chain.

    Args:
        keys: what seals it.
        writer: its name; a new one without.
    """

    def __init__(self, keys: AuditKeys, writer: str = "") -> None:
        self.writer = writer or secrets.token_hex(8)
        self._keys = keys
        self.head = Head(number=0, hash=beginning(self.writer))
        self._tried: Head | None = None

    def link(self, connection: Connection, new: Sequence[Row], calls: Iterable[Row]) -> Head:
        """Chain requests that are being written; the head that becomes true with the commit."""
        self._take_up(connection)
        of: dict[str, list[Row]] = defaultdict(list)
        for call in calls:
            of[call["request_id"]].append(call)
        number, previous, links = self.head.number, self.head.hash, []
        for row in breathing(new):
            number += 1
            link = self._keys.seal(previous, content(row, of[row["id"]]))
            links.append(
                {
                    "writer": self.writer,
                    "number": number,
                    "request_id": row["id"],
                    "previous": previous,
                    "hash": link,
                }
            )
            previous = link
        if links:
            connection.execute(insert(chain_links), links)
            self._put_head(connection, number, previous)
        self._tried = Head(number=number, hash=previous)
        return self._tried

    def _take_up(self, connection: Connection) -> None:
        """Go on behind what was tried last, should it be there although its commit seemed to fail.

        A connection may break after the database has committed and before it has said so.
        """
        if self._tried is None or self._tried == self.head:
            return
        stored = select(chain_heads.c.number, chain_heads.c.hash)
        row = connection.execute(stored.where(chain_heads.c.writer == self.writer)).first()
        if row is not None and tuple(row) == (self._tried.number, self._tried.hash):
            self.head = self._tried
        self._tried = None

    def _put_head(self, connection: Connection, number: int, last: str) -> None:
        dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
        seal = self._keys.seal("head", self.writer, number, last)
        values = {"writer": self.writer, "number": number, "hash": last, "seal": seal}
        putting = dialect.insert(chain_heads).values(values)
        connection.execute(
            putting.on_conflict_do_update(
                index_elements=["writer"], set_={k: v for k, v in values.items() if k != "writer"}
            )
        )


def beginning(writer: str) -> str:
    """What the first link of a chain follows."""
    return f"begins:{writer}"


def content(request: Row, calls: Sequence[Row]) -> str:
    """A request's row and its calls as the same text for the same values, from either database.

    What is null is left out, so that a column that comes later changes no hash.
    """
    own = sorted((c for c in calls if c["kind"] != Kind.SHADOW), key=lambda call: call["index"])
    value = [_plain(requests, request), *(_plain(attempts, call) for call in own)]
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def seal_gap(keys: AuditKeys, gap: Mapping[str, Any]) -> str:
    """The seal of a gap."""
    return keys.seal(*gap_parts(gap))


def gap_parts(gap: Row) -> tuple[object, ...]:
    """What a gap's seal is of."""
    names = ("writer", "first", "last", "previous", "hash", "deletion")
    return ("gap", *(gap[name] for name in names))


def leave_gaps(
    connection: Connection, ids: Sequence[str], deletion: int, keys: AuditKeys | None
) -> None:
    """Take the links of requests that are being removed, and say that they are missing by right.

    Raises:
        PermissionError: they are chained and there is no key to say it with.
    """
    links = list(
        connection.execute(
            select(chain_links)
            .where(chain_links.c.request_id.in_(ids))
            .order_by(chain_links.c.writer, chain_links.c.number)
        ).mappings()
    )
    if not links:
        return
    if keys is None:
        raise PermissionError("the rows are chained, and a gap in a chain is sealed with the key")
    connection.execute(delete(chain_links).where(chain_links.c.request_id.in_(ids)))
    gaps = _in_a_row(links, deletion)
    _take_in_those_before(connection, gaps, deletion)
    connection.execute(insert(chain_gaps), [{**gap, "seal": seal_gap(keys, gap)} for gap in gaps])


def _in_a_row(links: Sequence[Row], deletion: int) -> list[dict[str, Any]]:
    """Gaps, each as long as can be."""
    gaps: list[dict[str, Any]] = []
    for link in links:
        last = gaps[-1] if gaps else None
        follows = last and (last["writer"], last["last"] + 1) == (link["writer"], link["number"])
        if last is not None and follows:
            last.update(last=link["number"], hash=link["hash"])
            continue
        gaps.append(
            {
                "writer": link["writer"],
                "first": link["number"],
                "last": link["number"],
                "previous": link["previous"],
                "hash": link["hash"],
                "deletion": deletion,
            }
        )
    return gaps


def _take_in_those_before(
    connection: Connection, gaps: Sequence[dict[str, Any]], deletion: int
) -> None:
    """Make one gap of each and of that of the same deletion right before it.

    They are asked for together: a tenant's rows lie apart, so that nearly each is a gap of its own.
    """
    ends = [gap["first"] - 1 for gap in gaps]
    wanted = select(chain_gaps).where(
        chain_gaps.c.deletion == deletion, chain_gaps.c.last.in_(ends)
    )
    there = {(row["writer"], row["last"]): row for row in connection.execute(wanted).mappings()}
    gone = []
    for gap in gaps:
        if (earlier := there.get((gap["writer"], gap["first"] - 1))) is not None:
            gap.update(first=earlier["first"], previous=earlier["previous"])
            gone.append((earlier["writer"], earlier["first"]))
    if gone:
        key = tuple_(chain_gaps.c.writer, chain_gaps.c.first)
        connection.execute(delete(chain_gaps).where(key.in_(gone)))


_COLUMNS = {
    # Plain texts, which the columns' own names are not.
    table: [(str(column.name), isinstance(column.type, Double)) for column in table.columns]
    for table in (requests, attempts)
}


def _plain(table: Table, row: Row) -> dict[str, Any]:
    values = {}
    for name, is_double in _COLUMNS[table]:
        value = row[name]
        if value is not None:
            # A double may have been given as a whole number, and zero may have lost its sign.
            values[name] = float(value) + 0.0 if is_double else _json(value)
    return values


def _json(value: Any) -> Any:
    """Numbers within documents as doubles: databases do not tell 1 from 1.0 alike."""
    if isinstance(value, Mapping):
        return {name: _nested(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(each) for each in value]
    return value


def _nested(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) + 0.0 if number else _json(value)
