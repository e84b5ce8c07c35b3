import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from sqlalchemy import Connection, Engine, delete, insert, select, update

from cascade.audit import record
from cascade.types import Kind
from serving.store.chain import Chain, content
from serving.store.database import WRITES, engine_for
from serving.store.keys import AuditKeys, audit_keys, new_key
from serving.store.late import Late
from serving.store.removal import Removal, remove
from serving.store.rows import decode, encode
from serving.store.rows import insert as insert_entries
from serving.store.tables import (
    attempts,
    chain_gaps,
    chain_heads,
    chain_links,
    deletions,
    feedback,
    requests,
)
from serving.store.verify import Verified, verify
from tests.builders import attempt, escalated, request, result, verdict
from tests.databases import Database
from tests.serving.store.conftest import SinkFactory

OLD, NEW = new_key(), new_key()


def keys_of(text: str) -> AuditKeys:
    keys = audit_keys({"CASCADE_AUDIT_KEY": text})
    assert keys is not None
    return keys


KEYS = keys_of(OLD)


def odd(name: str) -> object:
    """A request whose numbers the two databases write differently."""
    features = {"nan": math.nan, "zero": -0.0, "whole": 3.0, "tiny": 1e-7, "huge": 1e22}
    judged = attempt(verdict=verdict(0.5, features=features))
    return result(name, attempts=(judged,), seconds=2.0, overhead_seconds=-0.0)


def chained(engine: Engine, chain: Chain, names: str, *, started_at: float = 100.0) -> None:
    """One request a letter, in transactions of two."""
    entries = [
        decode(encode(replace(record(odd(name)), created_at=started_at + n)))  # type: ignore[arg-type]
        for n, name in enumerate(names)
    ]
    for first in range(0, len(entries), 2):
        with engine.execution_options(**WRITES).begin() as connection:
            new = insert_entries(connection, entries[first : first + 2])
            head = chain.link(connection, new.requests, new.calls)
        chain.head = head


@pytest.fixture
def log(engine: Engine) -> Engine:
    """Two chains of six and three rows."""
    chained(engine, Chain(KEYS, "one"), "abcdef")
    chained(engine, Chain(KEYS, "two"), "xyz", started_at=103.0)
    return engine


def checked(engine: Engine, keys: AuditKeys = KEYS) -> Verified:
    return verify(engine, keys)


def test_rows_that_nobody_touched_are_in_order(log: Engine) -> None:
    seen = []
    found = verify(log, KEYS, seen.append)
    assert (found.rows, found.faults, found.missing, found.unchained) == (9, [], {}, 0)
    assert {writer: head[0] for writer, head in found.heads.items()} == {"one": 6, "two": 3}
    assert sum(seen) == 9


def test_what_comes_after_a_row_is_no_part_of_it(log: Engine) -> None:
    late = Late(request_id="c", attempts=(attempt(9, kind=Kind.SHADOW),), at=1.0)
    with log.execution_options(**WRITES).begin() as connection:
        insert_entries(connection, [decode(encode(late))])
        connection.execute(
            insert(feedback).values(request_id="c", tenant="default", source="", given_at=1.0)
        )
    assert checked(log).faults == []


Harm = Callable[[Connection], object]

HARMS: dict[str, tuple[Harm, int, str]] = {
    "a cost": (
        lambda c: c.execute(update(requests).where(requests.c.id == "c").values(cost_pico=1)),
        3,
        "was changed",
    ),
    "a value made null": (
        lambda c: c.execute(update(requests).where(requests.c.id == "c").values(tier=None)),
        3,
        "was changed",
    ),
    "a score in a document": (
        lambda c: c.execute(
            update(attempts).where(attempts.c.request_id == "c").values(features={"whole": 4.0})
        ),
        3,
        "was changed",
    ),
    "an attempt": (
        lambda c: c.execute(delete(attempts).where(attempts.c.request_id == "c")),
        3,
        "was changed",
    ),
    "an attempt that is called a late one": (
        lambda c: c.execute(
            update(attempts).where(attempts.c.request_id == "c").values(kind="shadow")
        ),
        3,
        "was changed",
    ),
    "a request": (
        lambda c: (
            c.execute(delete(attempts).where(attempts.c.request_id == "c")),
            c.execute(delete(requests).where(requests.c.id == "c")),
        ),
        3,
        "was removed",
    ),
    "a request with its link": (
        lambda c: (
            c.execute(delete(chain_links).where(chain_links.c.request_id == "c")),
            c.execute(delete(attempts).where(attempts.c.request_id == "c")),
            c.execute(delete(requests).where(requests.c.id == "c")),
        ),
        3,
        "is missing, and nothing says that it may be",
    ),
    "the last request": (
        lambda c: (
            c.execute(delete(chain_links).where(chain_links.c.request_id == "f")),
            c.execute(delete(attempts).where(attempts.c.request_id == "f")),
            c.execute(delete(requests).where(requests.c.id == "f")),
        ),
        6,
        "is missing: the chain went on once",
    ),
    "a chain's head": (
        lambda c: c.execute(delete(chain_heads).where(chain_heads.c.writer == "one")),
        6,
        "the head of its chain is missing",
    ),
    "the order of two rows": (
        lambda c: (
            c.execute(update(chain_links).where(chain_links.c.request_id == "c").values(number=99)),
            c.execute(update(chain_links).where(chain_links.c.request_id == "d").values(number=3)),
            c.execute(update(chain_links).where(chain_links.c.request_id == "c").values(number=4)),
        ),
        3,
        "does not follow the row before it",
    ),
    "a gap that nobody sealed": (
        lambda c: (
            c.execute(delete(chain_links).where(chain_links.c.request_id == "c")),
            c.execute(
                insert(chain_gaps).values(
                    writer="one", first=3, last=3, previous="", hash="", deletion=1, seal="x:y"
                )
            ),
        ),
        3,
        "is missing, and what says that it may be was not sealed",
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_the_first_broken_row_is_named(log: Engine, harm: str) -> None:
    do, number, what = HARMS[harm]
    with log.begin() as connection:
        do(connection)
    (fault,) = checked(log).faults
    assert (fault.writer, fault.number) == ("one", number)
    assert what in fault.what
    if "missing" not in what and "order" not in harm:
        assert fault.request_id == "c"


def test_a_row_that_somebody_put_in_is_in_no_chain(log: Engine) -> None:
    with log.begin() as connection:
        insert_entries(connection, [decode(encode(record(result("forged"))))])
    assert checked(log).unchained == 1


def test_a_chain_cannot_be_mended_without_the_key(log: Engine) -> None:
    forger = Chain(keys_of(NEW), "one")
    with log.begin() as connection:
        connection.execute(update(requests).where(requests.c.id == "f").values(cost_pico=1))
        row = connection.execute(select(requests).where(requests.c.id == "f")).mappings().one()
        calls = connection.execute(select(attempts).where(attempts.c.request_id == "f")).mappings()
        link = connection.execute(
            select(chain_links).where(chain_links.c.request_id == "f")
        ).mappings()
        forged = forger._keys.seal(link.one()["previous"], content(row, calls.all()))  # noqa: SLF001
        connection.execute(
            update(chain_links).where(chain_links.c.request_id == "f").values(hash=forged)
        )
    (fault,) = checked(log).faults
    assert (fault.number, fault.request_id) == (6, "f")


def test_a_removal_by_right_leaves_the_chain_whole_and_says_what_is_missing(log: Engine) -> None:
    gone = remove(log, Removal.before(104.0), who="me", keys=KEYS, batch=2)
    assert gone.requests == 4 + 1
    found = checked(log)
    assert (found.faults, found.rows, found.missing) == ([], 4, {"retention": 5})
    with log.connect() as connection:
        # Batches of one run make one gap.
        gaps = connection.execute(select(chain_gaps.c.first, chain_gaps.c.last)).all()
        assert sorted(map(tuple, gaps)) == [(1, 1), (1, 4)]


def test_whole_chains_may_go_and_single_rows_within_one(log: Engine) -> None:
    with log.begin() as connection:
        connection.execute(
            update(requests).where(requests.c.id.in_(["b", "e"])).values(end_user="kim")
        )
        links = chain_links.c.request_id.in_(["b", "e"])
        assert len(connection.execute(select(chain_links).where(links)).all()) == 2
    assert remove(log, Removal.of_user("kim"), who="me", keys=KEYS).requests == 2
    assert checked(log).faults == []
    assert remove(log, Removal.before(1e9), who="me", keys=KEYS).requests == 7
    found = checked(log)
    assert (found.faults, found.rows) == ([], 0)
    assert found.missing == {"retention": 7, "user": 2}


def test_a_gap_that_is_made_longer_afterwards_shows(log: Engine) -> None:
    remove(log, Removal.before(102.0), who="me", keys=KEYS)
    with log.begin() as connection:
        third = select(chain_links).where(chain_links.c.request_id == "c")
        link = connection.execute(third).mappings().one()
        connection.execute(delete(chain_links).where(chain_links.c.request_id == "c"))
        connection.execute(update(chain_gaps).values(last=3, hash=link["hash"]))
    assert [fault.number for fault in checked(log).faults] == [1]


def test_nothing_that_is_chained_goes_without_the_key(log: Engine) -> None:
    with pytest.raises(PermissionError, match="sealed with the key"):
        remove(log, Removal.before(104.0), who="me")
    assert checked(log).rows == 9
    with log.connect() as connection:
        assert connection.execute(select(deletions)).all() == []


def test_rows_of_an_old_key_are_checked_when_it_is_known_still(log: Engine) -> None:
    both = keys_of(f"{NEW},{OLD}")
    chained(log, Chain(both, "three"), "pq")
    assert checked(log, both).faults == []
    assert {fault.writer for fault in checked(log, keys_of(NEW)).faults} == {"one", "two"}


def test_what_a_sink_writes_is_chained(engine: Engine, open_sink: SinkFactory) -> None:
    sink = open_sink(chain=Chain(KEYS))
    for number in range(20):
        sink.write(escalated(request=request(id=f"r{number:02d}", session="\0")))
    assert sink.flush(10)
    sink.write(odd("odd"))
    sink.write(escalated("r00"))  # is there already
    assert sink.flush(10)
    found = checked(engine)
    assert (found.rows, found.faults, found.unchained) == (21, [], 0)


@pytest.mark.parametrize("stored", [True, False])
def test_a_commit_that_seems_to_fail_breaks_no_chain(engine: Engine, *, stored: bool) -> None:
    chain = Chain(KEYS, "one")
    chained(engine, chain, "ab")
    head = chain.head
    with engine.execution_options(**WRITES).connect() as connection:
        new = insert_entries(connection, [decode(encode(record(odd("c"))))])  # type: ignore[arg-type]
        assert chain.link(connection, new.requests, new.calls).number == 3
        if stored:
            connection.commit()
        else:
            connection.rollback()
    assert chain.head == head
    chained(engine, chain, "cde")
    found = checked(engine)
    assert (found.rows, found.faults, found.heads["one"][0]) == (5, [], 5)


def test_a_row_that_was_removed_is_not_taken_off_those_in_no_chain(log: Engine) -> None:
    with log.begin() as connection:
        connection.execute(delete(requests).where(requests.c.id.in_(["c", "d"])))
    found = checked(log)
    assert [fault.number for fault in found.faults] == [3]
    assert found.unchained == 0


def test_two_that_remove_at_once_count_what_is_missing_once(
    log: Engine, database: Database
) -> None:
    patient = engine_for(database.url.replace("?timeout=0.5", ""))
    together = Barrier(2)

    def prune() -> int:
        together.wait(10)
        return remove(patient, Removal.before(1e9), who="me", keys=KEYS, batch=1).requests

    with ThreadPoolExecutor(2) as pool:
        gone = [pool.submit(prune) for _ in range(2)]
        assert sum(each.result(30) for each in gone) == 9
    patient.dispose()
    found = checked(log)
    assert (found.faults, found.missing) == ([], {"retention": 9})
