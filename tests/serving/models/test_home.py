from pathlib import Path

import pytest

from serving.models.home import home


def test_cascade_home_decides_where_it_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CASCADE_HOME", str(tmp_path))
    assert home() == tmp_path


def test_a_relative_home_does_not_move_with_the_working_directory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASCADE_HOME", "here")
    assert home() == Path.cwd() / "here"


def test_else_it_lies_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("CASCADE_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert home() == tmp_path / "cascade"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / ".cache" / "cascade"


def test_on_macos_it_lies_in_library_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("CASCADE_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / "Library" / "Caches" / "cascade"
