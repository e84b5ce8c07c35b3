import pytest

from evals.files import ResultFileError, require_folder, write_whole


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "result.json"
    write_whole(path, "old")
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path):
    with pytest.raises(ResultFileError, match=r"nowhere/result\.json: cannot be written"):
        write_whole(tmp_path / "nowhere" / "result.json", "text")
    folder = tmp_path / "taken"
    folder.mkdir()
    with pytest.raises(ResultFileError):
        write_whole(folder, "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_missing_folder_is_noticed_before_anything_is_measured(tmp_path):
    require_folder(tmp_path / "result.json")
    with pytest.raises(ResultFileError, match="there is no folder"):
        require_folder(tmp_path / "nowhere" / "result.json")
