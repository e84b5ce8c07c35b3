import os
from pathlib import Path

import pytest

from serving.models.fetch import ensure
from serving.models.sources import LocalFolders, SourceError, silent


def test_a_local_file_is_linked_and_takes_no_space(model, content, tmp_path: Path):
    shelf, folder = tmp_path / "shelf", tmp_path / "here"
    shelf.mkdir()
    folder.mkdir()
    (shelf / model.file).write_bytes(content)
    source = LocalFolders([tmp_path / "nowhere", shelf])
    assert source.space_bytes(model, folder) == 0
    assert source.fetch(model, folder, silent).samefile(shelf / model.file)


def test_a_link_to_a_local_file_is_followed(model, content, tmp_path: Path):
    (tmp_path / "real").write_bytes(content)
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / model.file).symlink_to(tmp_path / "real")
    staged = LocalFolders([shelf]).fetch(model, tmp_path, silent)
    assert not staged.is_symlink()
    assert staged.read_bytes() == content


def test_a_wrong_local_file_is_refused_and_left_alone(model, content, tmp_path, good_source):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / model.file).write_bytes(content[::-1])
    path = ensure(model, tmp_path, sources=[LocalFolders([shelf]), good_source])
    assert path.read_bytes() == content
    assert (shelf / model.file).read_bytes() == content[::-1]


def test_the_folders_come_from_the_environment(monkeypatch, model, content, tmp_path: Path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / model.file).write_bytes(content)
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    monkeypatch.setenv("CASCADE_MODELS_DIR", os.pathsep.join(folders))
    assert LocalFolders().fetch(model, tmp_path, silent).read_bytes() == content


def test_folders_without_the_file_are_named(model, tmp_path: Path):
    with pytest.raises(SourceError, match=rf"no {model.file} in .*shelf"):
        LocalFolders([tmp_path / "shelf"]).fetch(model, tmp_path, silent)


def test_without_any_folder_the_variable_is_named(monkeypatch, model, tmp_path: Path):
    monkeypatch.delenv("CASCADE_MODELS_DIR", raising=False)
    with pytest.raises(SourceError, match="CASCADE_MODELS_DIR is not set"):
        LocalFolders().fetch(model, tmp_path, silent)
