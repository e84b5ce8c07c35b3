import logging
import os
import time
from pathlib import Path

import pytest

from serving.store.spool import Spool
from tests.serving.store.waiting import files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cascade.spill"


@pytest.fixture
def spool(folder: Path) -> Spool:
    made = Spool(folder)
    made.open()
    return made


def claimed(spool: Spool, most_rows: int = 1000) -> list[bytes]:
    with spool.claim(most_rows) as claim:
        return list(claim.lines)


def test_batches_come_back_oldest_first(spool: Spool) -> None:
    for number in range(20):
        spool.put([b"%d" % number])
    assert claimed(spool) == [b"%d" % number for number in range(20)]


def test_order_survives_a_clock_that_is_set_back(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.put([b"first"])
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    spool.put([b"second"])
    assert claimed(spool) == [b"first", b"second"]


def test_order_survives_a_restart_with_a_clock_that_is_set_back(
    spool: Spool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.put([b"first"])
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    restarted = Spool(folder)
    restarted.open()
    restarted.put([b"second"])
    assert claimed(restarted) == [b"first", b"second"]


def test_a_claim_stops_before_too_many_rows_but_takes_one_batch_of_any_size(spool: Spool) -> None:
    spool.put([b"1", b"2", b"3"])
    spool.put([b"4", b"5"])
    assert claimed(spool, 4) == [b"1", b"2", b"3"]
    assert claimed(spool, 2) == [b"1", b"2", b"3"]
    assert claimed(spool, 5) == [b"1", b"2", b"3", b"4", b"5"]


def test_what_one_process_works_on_another_leaves_alone(spool: Spool, folder: Path) -> None:
    spool.put([b"1"])
    other = Spool(folder)
    with spool.claim(10) as mine:
        assert claimed(other) == []
        other.put([b"2"])
        assert claimed(other) == [b"2"]
        spool.remove(mine)
    assert claimed(other) == [b"2"]


def test_the_backlog_is_counted(spool: Spool) -> None:
    assert spool.backlog().files == 0
    assert spool.backlog().age == 0.0
    spool.put([b"one", b"two"])
    spool.put([b"three"])
    backlog = spool.backlog()
    assert (backlog.files, backlog.rows, backlog.bytes) == (2, 3, 14)
    assert 0 < backlog.age < 60


def test_many_small_files_become_few_with_the_same_lines(spool: Spool, folder: Path) -> None:
    lines = [b"%d" % number for number in range(150)]
    for line in lines:
        spool.put([line])
    age = spool.backlog().oldest_ns
    spool.merge()
    assert len(files(folder)) == 1
    assert spool.backlog().rows == 150
    assert spool.backlog().oldest_ns == age
    assert claimed(spool) == lines


def test_a_few_files_are_not_worth_merging(spool: Spool, folder: Path) -> None:
    for number in range(20):
        spool.put([b"%d" % number])
    spool.merge()
    assert len(files(folder)) == 20


def test_files_that_another_process_works_on_are_not_merged(spool: Spool, folder: Path) -> None:
    for number in range(150):
        spool.put([b"%d" % number])
    with Spool(folder).claim(10) as theirs:
        spool.merge()
        assert len(theirs.batches) == 10
        assert len(files(folder)) == 11


def test_a_file_a_dead_process_left_half_written_is_taken_up(folder: Path) -> None:
    folder.mkdir()
    left = folder / "00000000000000000001-1-2.jsonl.tmp"
    left.write_bytes(b"whole\nhal")
    os.utime(left, (1, 1))
    spool = Spool(folder)
    spool.open()
    assert claimed(spool) == [b"whole", b"hal"]


def test_a_file_that_is_being_written_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "00000000000000000001-1-2.jsonl.tmp").write_bytes(b"who")
    spool = Spool(folder)
    spool.open()
    assert spool.batches() == []


def test_a_batch_that_cannot_be_written_leaves_nothing_under_its_name(
    spool: Spool, folder: Path
) -> None:
    folder.rmdir()
    with pytest.raises(OSError, match="No such file"):
        spool.put([b"1"])
    assert spool.batches() == []


def test_a_file_that_cannot_be_read_does_not_hold_up_the_others(
    spool: Spool, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "00000000000000000001-1-1.jsonl").mkdir()
    spool.put([b"1"])
    with caplog.at_level(logging.ERROR):
        assert claimed(spool) == [b"1"]
        assert claimed(spool) == [b"1"]
    assert caplog.text.count("cannot be read") == 1


def test_files_of_others_are_not_batches(spool: Spool, folder: Path) -> None:
    for name in ("notes.txt", "a-b-c.jsonl", "1-2.jsonl", "1-2-3.bad", ".jsonl", "1-2-3-4.jsonl"):
        (folder / name).write_text("x")
    assert spool.batches() == []


def test_only_the_owner_may_look_into_the_folder(folder: Path) -> None:
    Spool(folder).open()
    assert folder.stat().st_mode & 0o777 == 0o700
