"""Checks the chains of the audit log, and says which row is the first that is not as it was."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, func, select

from serving.store.chain import beginning, content, gap_parts
from serving.store.keys import AuditKeys
from serving.store.sums import Row
from serving.store.tables import (
    attempts,
    chain_gaps,
    chain_heads,
    chain_links,
    deletions,
    requests,
)

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where a chain is broken first.

    Attributes:
        number: of the row in its writer's chain.
        request_id: of that row, if it can be told.
        what: is wrong, as a sentence.
    """

    writer: str
    number: int
    request_id: str | None
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the chains of a log come to.

    Attributes:
        rows: that were looked at.
        heads: by writer, the number and the hash of the last row of its chain. Whoever keeps them
            elsewhere sees also when a whole chain is gone.
        missing: rows that were removed by right, by the kind of the deletion.
        unchained: requests in no chain: written while it was off, or by somebody else.
        faults: the first of each chain that is broken.
    """

    rows: int
    heads: Mapping[str, tuple[int, str]]
    missing: dict[str, int]
    unchained: int
    faults: Sequence[Fault]


def verify(
    engine: Engine, keys: AuditKeys, looked_at: Callable[[int], None] = lambda _: None
) -> Verified:
    """Check every chain against the rows as they are.

    Args:
        engine: from `engine_for`.
        keys: those that the rows were written with.
        looked_at: told how many more rows were looked at.
    """
    # One look at the whole log: what is written meanwhile is in all of it or in none.
    level = {"isolation_level": "REPEATABLE READ"} if engine.name == "postgresql" else {}
    with engine.execution_options(**level).connect() as connection:
        walk = _Walk(connection, keys, looked_at)
        writers = _writers(connection)
        faults = [fault for writer in writers if (fault := walk.check(writer)) is not None]
        return Verified(
            rows=walk.rows,
            heads=_heads(connection),
            missing=_missing(connection),
            unchained=_unchained(connection),
            faults=faults,
        )


def chained(connection: Connection) -> int:
    """How many rows are in chains."""
    return connection.scalar(select(func.count()).select_from(chain_links)) or 0


class _Broken(Exception):  # noqa: N818 - it ends a walk
    def __init__(self, number: int, what: str, request_id: str | None = None) -> None:
        super().__init__(what)
        self.number, self.what, self.request_id = number, what, request_id


class _Walk:
    """Goes along chains."""

    def __init__(
        self, connection: Connection, keys: AuditKeys, looked_at: Callable[[int], None]
    ) -> None:
        self.rows = 0
        self._connection = connection
        self._keys = keys
        self._looked_at = looked_at

    def check(self, writer: str) -> Fault | None:
        """The first thing that is wrong with a chain, if anything is."""
        try:
            self._follow(writer)
        except _Broken as broken:
            return Fault(
                writer=writer,
                number=broken.number,
                request_id=broken.request_id,
                what=broken.what,
            )
        return None

    def _follow(self, writer: str) -> None:
        gaps = {gap["first"]: gap for gap in self._gaps(writer)}
        number, last = 1, beginning(writer)
        for link, request, calls in self._links(writer):
            number, last = self._across(gaps, number, last, link["number"])
            if link["number"] != number:
                raise _Broken(number, "is missing, and nothing says that it may be")
            self._check_link(link, request, calls, last)
            number, last = number + 1, link["hash"]
        number, last = self._across(gaps, number, last, None)
        self._check_head(writer, number - 1, last)

    def _across(
        self, gaps: dict[int, Row], number: int, last: str, wanted: int | None
    ) -> tuple[int, str]:
        """Over the rows that are missing by right."""
        while number != wanted and (gap := gaps.get(number)) is not None:
            if not self._keys.sealed(gap["seal"], *gap_parts(gap)) or gap["previous"] != last:
                raise _Broken(number, "is missing, and what says that it may be was not sealed")
            number, last = gap["last"] + 1, gap["hash"]
        return number, last

    def _check_link(self, link: Row, request: Row | None, calls: Sequence[Row], last: str) -> None:
        number, request_id = link["number"], link["request_id"]
        if link["previous"] != last:
            raise _Broken(number, "does not follow the row before it", request_id)
        if request is None:
            raise _Broken(number, "was removed", request_id)
        if not self._keys.sealed(link["hash"], last, content(request, calls)):
            raise _Broken(
                number, "was changed, or chained with a key that is not known", request_id
            )

    def _check_head(self, writer: str, number: int, last: str) -> None:
        wanted = select(chain_heads).where(chain_heads.c.writer == writer)
        head = self._connection.execute(wanted).mappings().first()
        if head is None:
            raise _Broken(number, "is the last, and the head of its chain is missing")
        parts = ("head", writer, head["number"], head["hash"])
        if not self._keys.sealed(head["seal"], *parts):
            raise _Broken(head["number"], "is the head, and was changed or sealed by another key")
        if (head["number"], head["hash"]) != (number, last):
            raise _Broken(number + 1, "is missing: the chain went on once")

    def _links(self, writer: str) -> Iterator[tuple[Row, Row | None, Sequence[Row]]]:
        key, after = chain_links.c.number, 0
        while True:
            wanted = select(chain_links).where(chain_links.c.writer == writer, key > after)
            links = self._connection.execute(wanted.order_by(key).limit(_PAGE)).mappings().all()
            ids = [link["request_id"] for link in links]
            known = {row["id"]: row for row in self._rows(ids)}
            calls = self._calls(ids)
            for link in links:
                self.rows += 1
                yield link, known.get(link["request_id"]), calls[link["request_id"]]
            self._looked_at(len(links))
            if len(links) < _PAGE:
                return
            after = links[-1]["number"]

    def _rows(self, ids: Sequence[str]) -> Sequence[Row]:
        wanted = select(requests).where(requests.c.id.in_(ids))
        return self._connection.execute(wanted).mappings().all()

    def _calls(self, ids: Sequence[str]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        wanted = select(attempts).where(attempts.c.request_id.in_(ids))
        for call in self._connection.execute(wanted).mappings():
            found[call["request_id"]].append(call)
        return found

    def _gaps(self, writer: str) -> Sequence[Row]:
        wanted = select(chain_gaps).where(chain_gaps.c.writer == writer)
        return self._connection.execute(wanted).mappings().all()


def _writers(connection: Connection) -> list[str]:
    """By the names of all that a chain consists of, so that none can be made to vanish alone."""
    names = [select(table.c.writer).distinct() for table in (chain_links, chain_heads, chain_gaps)]
    return sorted({name for each in names for name in connection.scalars(each)})


def _heads(connection: Connection) -> dict[str, tuple[int, str]]:
    rows = connection.execute(select(chain_heads).order_by(chain_heads.c.writer)).mappings()
    return {row["writer"]: (row["number"], row["hash"]) for row in rows}


def _missing(connection: Connection) -> dict[str, int]:
    number = func.sum(chain_gaps.c.last - chain_gaps.c.first + 1)
    wanted = select(deletions.c.kind, number).join_from(
        chain_gaps, deletions, deletions.c.id == chain_gaps.c.deletion
    )
    rows = connection.execute(wanted.group_by(deletions.c.kind).order_by(deletions.c.kind))
    return {kind: int(count) for kind, count in rows}


def _unchained(connection: Connection) -> int:
    link = select(chain_links.c.number).where(chain_links.c.request_id == requests.c.id)
    return connection.scalar(select(func.count()).select_from(requests).where(~link.exists())) or 0
