"""Removing from the spool: what waits, what waits for its request, and what no database took."""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cascade.audit import AuditRecord, record
from serving.store.feedback import Feedback
from serving.store.late import Late
from serving.store.removal import Removal
from serving.store.removal_waiting import Waiting, remove_waiting, waiting
from serving.store.rows import encode
from serving.store.spool import Spool
from tests.builders import escalated, request
from tests.serving.store.test_removal import store, word


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spill")
    made.open()
    return made


def asked(name: str, *, tenant: str = "a", user: str = "kim", at: float = 1000.0) -> AuditRecord:
    return record(escalated(request=request(id=name, tenant=tenant, user=user), started_at=at))


def late(name: str) -> Late:
    return Late(request_id=name, attempts=escalated(name).attempts[:1], at=1.0)


def content(spool: Spool) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(spool.folder.iterdir()))


def lines(*records: AuditRecord | Feedback | Late) -> Sequence[bytes]:
    return [encode(each) for each in records]


@pytest.mark.parametrize("place", ["put", "postpone", "set_aside"])
def test_lines_of_a_tenant_go_wherever_they_are(engine: Engine, spool: Spool, place: str) -> None:
    mine, other = asked("mine"), asked("other", tenant="b")
    getattr(spool, place)(lines(mine, other, word("mine", "a"), word("other", "b")))
    removal = Removal.of_tenant("a")
    assert waiting(engine, spool, removal) == Waiting(2, 0)
    assert b"mine" in content(spool)
    assert remove_waiting(engine, spool, removal) == Waiting(2, 0)
    assert b"mine" not in content(spool)
    assert content(spool).count(b"other") >= 2
    assert remove_waiting(engine, spool, removal) == Waiting(0, 0)


def test_a_batch_that_lost_lines_is_still_a_batch_and_says_how_many_it_has(
    engine: Engine, spool: Spool
) -> None:
    spool.put(lines(asked("mine"), asked("other", tenant="b")))
    spool.put(lines(asked("mine too")))
    remove_waiting(engine, spool, Removal.of_tenant("a"))
    backlog = spool.backlog()
    assert (backlog.files, backlog.rows) == (1, 1)
    with spool.claim(10) as claim:
        assert claim.lines == lines(asked("other", tenant="b"))


def test_a_word_on_anothers_request_does_not_take_that_request_along(
    engine: Engine, spool: Spool
) -> None:
    spool.put(lines(asked("theirs", tenant="b"), late("theirs"), word("theirs", "a")))
    assert remove_waiting(engine, spool, Removal.of_tenant("a")) == Waiting(1, 0)
    with spool.claim(10) as claim:
        assert claim.lines == lines(asked("theirs", tenant="b"), late("theirs"))


def test_what_belongs_to_a_request_of_the_log_or_of_the_spool_goes_with_it(
    engine: Engine, spool: Spool
) -> None:
    store(engine, [asked("stored"), asked("others", user="lee")])
    spool.postpone(lines(late("stored"), late("others"), word("stored")))
    spool.put(lines(asked("waits"), late("waits"), word("waits")))
    assert remove_waiting(engine, spool, Removal.of_user("kim")) == Waiting(5, 0)
    left = content(spool)
    assert b"stored" not in left
    assert b"waits" not in left
    assert b"others" in left


def test_of_a_user_only_one_tenants_go_if_that_is_wanted(engine: Engine, spool: Spool) -> None:
    spool.put(lines(asked("one", tenant="a"), asked("two", tenant="b")))
    assert remove_waiting(engine, spool, Removal.of_user("kim", "b")).lines == 1
    assert b'"one"' in content(spool)


def test_what_is_old_goes_and_what_is_not_stays(engine: Engine, spool: Spool) -> None:
    spool.set_aside(lines(asked("old", at=10.0), asked("new", at=1000.0), word("x", given_at=10.0)))
    assert remove_waiting(engine, spool, Removal.before(100.0)).lines == 2
    assert b'"new"' in content(spool)


def test_lines_that_tell_nobody_whose_they_are_stay_and_are_counted(
    engine: Engine, spool: Spool
) -> None:
    spool.set_aside([b"\x00\x01 no JSON", b"[1, 2]", b'{"id": "half"}', *lines(asked("mine"))])
    assert remove_waiting(engine, spool, Removal.of_tenant("a")) == Waiting(1, 2)
    assert b"no JSON" in content(spool)
    assert b"half" in content(spool)


def test_what_a_service_is_just_bringing_to_the_log_is_left_to_it(
    engine: Engine, spool: Spool
) -> None:
    spool.put(lines(asked("mine")))
    [path] = spool.folder.iterdir()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert remove_waiting(engine, spool, Removal.of_tenant("a")) == Waiting(0, 0)
    assert remove_waiting(engine, spool, Removal.of_tenant("a")) == Waiting(1, 0)
    assert not list(spool.folder.iterdir())


@pytest.mark.parametrize("suffix", [".jsonl.tmp", ".later.tmp", ".bad.tmp"])
def test_what_a_dead_process_was_writing_is_looked_at_too(
    engine: Engine, spool: Spool, suffix: str
) -> None:
    other = lines(asked("other", tenant="b"))[0]
    path = spool.folder / f"00000000000000000001-77-3{suffix}"
    path.write_bytes(b"\n".join([*lines(asked("mine")), other, b'{"id": "cut o']))
    assert waiting(engine, spool, Removal.of_tenant("a")) == Waiting(0, 0)  # it may be alive
    os.utime(path, (0, 0))
    assert remove_waiting(engine, spool, Removal.of_tenant("a")) == Waiting(1, 1)
    assert path.read_bytes().splitlines()[0] == other
    assert b'"mine"' not in content(spool)


def test_a_file_that_somebody_gave_another_name_is_looked_at_and_keeps_it(
    engine: Engine, spool: Spool
) -> None:
    spool.set_aside(lines(asked("mine"), asked("other", tenant="b")))
    [path] = spool.folder.iterdir()
    path.rename(path.with_name("to-look-at.bad"))
    assert remove_waiting(engine, spool, Removal.of_tenant("a")).lines == 1
    assert [each.name for each in spool.folder.iterdir()] == ["to-look-at.bad"]
    assert b'"mine"' not in content(spool)
    assert b'"other"' in content(spool)


def test_there_need_be_no_spool(engine: Engine, tmp_path: Path) -> None:
    assert waiting(engine, Spool(tmp_path / "none"), Removal.of_tenant("a")) == Waiting(0, 0)
