from pathlib import Path

from serving.models import logs


def test_a_short_log_is_left_alone(tmp_path: Path):
    log = tmp_path / "small.log"
    log.write_text("ten bytes\n")
    logs.bound(log, limit_bytes=10)
    assert [path.name for path in tmp_path.iterdir()] == ["small.log"]


def test_a_long_log_moves_aside_while_its_writer_goes_on(tmp_path: Path):
    log = tmp_path / "small.log"
    with log.open("a") as writer:
        writer.write("much has happened\n")
        writer.flush()
        logs.bound(log, limit_bytes=10)
        writer.write("and goes on\n")
    assert log.read_text() == "and goes on\n"
    assert (tmp_path / "small.log.1").read_text() == "much has happened\n"


def test_only_one_old_log_is_kept(tmp_path: Path):
    log = tmp_path / "small.log"
    for text in ("first story", "second story"):
        log.write_text(text)
        logs.bound(log, limit_bytes=10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.log", "small.log.1"]
    assert (tmp_path / "small.log.1").read_text() == "second story"


def test_a_log_that_cannot_be_moved_is_no_reason_to_fail(tmp_path: Path, caplog):
    log = tmp_path / "small.log"
    log.write_text("much has happened")
    (tmp_path / "small.log.1").mkdir()
    logs.bound(log, limit_bytes=10)
    assert "cannot be shortened" in caplog.text


def test_the_tail_is_the_last_lines_since_a_point(tmp_path: Path):
    log = tmp_path / "small.log"
    log.write_text("old\nnew\nnewer\nnewest\n")
    assert logs.tail(log, start=4) == "new\nnewer\nnewest"
    assert logs.tail(log, start=4, lines=2) == "newer\nnewest"
    assert logs.tail(log, start=99) == "old\nnew\nnewer\nnewest"


def test_a_log_that_is_not_there_has_no_tail(tmp_path: Path):
    assert logs.tail(tmp_path / "none.log") == ""
