import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cascade.errors import ConfigError
from serving.models.catalogue import Model
from serving.models.fetch import ensure, free_bytes, is_verified, locate
from serving.models.sources import Progress, silent


def fetched(model: Model, home: Path, *sources, progress: Progress = silent) -> Path:
    return ensure(model, home, progress, sources=sources)


def test_a_fetched_file_is_whole_verified_and_alone(model, content, tmp_path, good_source):
    path = fetched(model, tmp_path, good_source)
    assert path == tmp_path / "models" / model.file
    assert path.read_bytes() == content
    assert is_verified(path, model)
    names = {found.name for found in path.parent.iterdir()}
    assert names == {model.file, f"{model.file}.verified", f"{model.file}.lock"}


def test_a_verified_file_is_neither_fetched_nor_read_again(model, tmp_path, good_source, heard):
    fetched(model, tmp_path, good_source)
    fetched(model, tmp_path, good_source, progress=heard)
    assert good_source.calls == ["tiny"]
    assert heard.labels == []


def test_wrong_bytes_are_deleted_and_the_next_source_is_asked(
    model, content, tmp_path, wrong_source, good_source
):
    path = fetched(model, tmp_path, wrong_source, good_source)
    assert path.read_bytes() == content
    assert not list(path.parent.glob("*.wrong"))


def test_wrong_bytes_alone_never_become_the_model(model, tmp_path, wrong_source):
    with pytest.raises(ConfigError, match="wrong: what came is not the model"):
        fetched(model, tmp_path, wrong_source)
    assert not list((tmp_path / "models").glob("*.gguf"))
    assert not list((tmp_path / "models").glob("*.wrong"))


def test_a_file_of_the_wrong_size_is_refused(model, content, tmp_path, good_source):
    good_source.content = content[:-1]
    with pytest.raises(ConfigError, match=r"10239 bytes, not 10240"):
        fetched(model, tmp_path, good_source)


def test_when_no_source_has_it_each_is_named_with_its_reason(
    model, tmp_path, wrong_source, absent_source
):
    with pytest.raises(ConfigError) as caught:
        fetched(model, tmp_path, absent_source, wrong_source)
    said = str(caught.value)
    assert "absent: it is not here" in said
    assert "wrong: what came is not the model" in said
    assert "CASCADE_MODELS_DIR" in said
    assert model.file in said


def test_a_failing_disk_counts_as_a_failing_source(model, tmp_path, absent_source, good_source):
    absent_source.error = OSError(28, "No space left on device")
    assert fetched(model, tmp_path, absent_source, good_source).is_file()


def test_a_bug_in_a_source_is_not_taken_for_a_missing_file(model, tmp_path, absent_source):
    absent_source.error = TypeError("ours")
    with pytest.raises(TypeError):
        fetched(model, tmp_path, absent_source)


def test_without_disk_space_nothing_is_fetched(model, tmp_path, good_source):
    good_source.space = 3_000_000_000
    with pytest.raises(ConfigError, match=r"needs 3\.00 GB of disk space in .*1\.00 GB are free"):
        ensure(model, tmp_path, sources=[good_source], free=lambda _: 1_000_000_000)
    assert good_source.calls == []


def test_free_space_is_that_of_the_disk(tmp_path: Path):
    assert 0 < free_bytes(tmp_path) <= shutil.disk_usage(tmp_path).total


def test_a_touched_file_is_checked_again_but_not_fetched(model, tmp_path, good_source, heard):
    path = fetched(model, tmp_path, good_source)
    os.utime(path, ns=(0, 0))
    assert not is_verified(path, model)
    fetched(model, tmp_path, good_source, progress=heard)
    assert set(heard.labels) == {"tiny: checking"}
    assert heard.last == (model.size_bytes, model.size_bytes)
    assert good_source.calls == ["tiny"]
    assert is_verified(path, model)


def test_a_changed_file_is_fetched_again(model, content, tmp_path, good_source):
    path = fetched(model, tmp_path, good_source)
    path.write_bytes(content[::-1])
    os.utime(path, ns=(0, 0))
    assert fetched(model, tmp_path, good_source).read_bytes() == content
    assert good_source.calls == ["tiny", "tiny"]


def test_a_broken_stamp_is_no_stamp(model, tmp_path, good_source):
    path = fetched(model, tmp_path, good_source)
    path.with_name(f"{path.name}.verified").write_text("{half")
    assert not is_verified(path, model)
    fetched(model, tmp_path, good_source)
    assert is_verified(path, model)


def test_a_stamp_of_another_version_of_the_model_does_not_count(model, tmp_path, good_source):
    path = fetched(model, tmp_path, good_source)
    stamp = path.with_name(f"{path.name}.verified")
    stamp.write_text(stamp.read_text().replace(model.sha256, "0" * 64))
    assert not is_verified(path, model)


def test_what_failed_sources_left_is_cleared_once_one_has_brought_the_file(
    model, tmp_path, good_source
):
    folder = tmp_path / "models"
    (folder / f"{model.file}.parts").mkdir(parents=True)
    (folder / f"{model.file}.parts" / "01.bin").write_bytes(b"x")
    (folder / f"{model.file}.partial").write_bytes(b"x")
    (folder / "another.gguf.partial").write_bytes(b"x")
    fetched(model, tmp_path, good_source)
    assert not (folder / f"{model.file}.parts").exists()
    assert not (folder / f"{model.file}.partial").exists()
    assert (folder / "another.gguf.partial").exists()


def test_two_that_want_the_file_at_once_fetch_it_once(model, tmp_path, good_source):
    fetching, waiting = threading.Event(), threading.Event()

    def first(label: str, done: int, total: int) -> None:
        fetching.set()
        assert waiting.wait(10)

    def second(label: str, done: int, total: int) -> None:
        assert label == "tiny: another process is fetching it"
        waiting.set()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(fetched, model, tmp_path, good_source, progress=first)
        assert fetching.wait(10)
        other = pool.submit(fetched, model, tmp_path, good_source, progress=second)
        assert one.result(10) == other.result(10)
    assert good_source.calls == ["tiny"]


def test_a_home_that_cannot_be_made_is_named(model, tmp_path, good_source):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"file.*CASCADE_HOME"):
        fetched(model, tmp_path / "file", good_source)


def test_a_path_is_taken_as_it_is(tmp_path: Path):
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    assert locate(str(tmp_path / "own.gguf"), tmp_path) == tmp_path / "own.gguf"


def test_a_path_to_nothing_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no model file .*own\.gguf"):
        locate(str(tmp_path / "own.gguf"), tmp_path)


def test_a_name_that_is_no_path_must_be_in_the_catalogue(tmp_path: Path):
    with pytest.raises(ConfigError, match="no embedded model is called 'own'"):
        locate("own", tmp_path)
