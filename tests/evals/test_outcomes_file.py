from dataclasses import replace

import pytest

from evals.files import ResultFileError
from evals.outcomes import ModelIdentity, OutcomesError
from evals.outcomes_file import OutcomesFile
from evals.outcomes_lines import line_of, read
from tests.evals.rows import MANIFEST, answer


def test_rows_of_several_runs_stand_in_one_file(tmp_path):
    path = tmp_path / "o.jsonl"
    with OutcomesFile(path, MANIFEST) as file:
        file.append(answer("p-1"))
    with OutcomesFile(path, replace(MANIFEST, begun="later", machine="other")) as file:
        assert list(file.rows) == [answer("p-1").key]
        file.append(answer("p-2"))
    outcomes = read(path)
    assert outcomes.manifest == MANIFEST
    assert list(outcomes.answers("small")) == ["p-1", "p-2"]


def test_a_row_is_in_the_file_as_soon_as_it_was_appended(tmp_path):
    path = tmp_path / "o.jsonl"
    with OutcomesFile(path, MANIFEST) as file:
        file.append(answer())
        assert list(read(path).answers("small")) == ["p-1"]


def test_wherever_the_writing_is_cut_the_whole_rows_stay_and_the_rest_is_done_again(tmp_path):
    path = tmp_path / "o.jsonl"
    rows = [answer("p-1", text="caf\u00e9"), answer("p-2")]
    whole = "".join(map(line_of, (MANIFEST, *rows))).encode()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        with OutcomesFile(path, MANIFEST) as file:
            assert len(file.rows) == max(0, whole[:length].count(b"\n") - 1)
            for row in rows:
                if row.key not in file.rows:
                    file.append(row)
        assert path.read_bytes() == whole


def test_an_unfinished_row_longer_than_one_read_is_cut_off(tmp_path):
    path = tmp_path / "o.jsonl"
    unfinished = line_of(answer("p-2", text="x" * 200_000))[:-1]
    path.write_text(line_of(MANIFEST) + line_of(answer("p-1")) + unfinished)
    with OutcomesFile(path, MANIFEST) as file:
        assert list(file.rows) == [answer("p-1").key]


def test_no_row_is_written_twice(tmp_path):
    with OutcomesFile(tmp_path / "o.jsonl", MANIFEST) as file:
        file.append(answer())
        with pytest.raises(OutcomesError, match="answer p-1 small is there already"):
            file.append(answer())


def test_a_file_of_other_prompts_or_models_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "o.jsonl"
    with OutcomesFile(path, MANIFEST) as file:
        file.append(answer())
    before = path.read_bytes()
    other = {**MANIFEST.tiers, "small": ModelIdentity(model="m-tiny")}
    with pytest.raises(OutcomesError, match=r"other prompts \(tasks\.jsonl was changed since\)"):
        OutcomesFile(path, replace(MANIFEST, prompts_sha256="0"))
    with pytest.raises(
        OutcomesError, match=r"tier 'small' was m-small 121212121212 s 1, and now is m-tiny\."
    ):
        OutcomesFile(path, replace(MANIFEST, tiers=other))
    with pytest.raises(OutcomesError, match="tier 'large' was m-large, and now is not there"):
        OutcomesFile(path, replace(MANIFEST, tiers={"small": MANIFEST.tiers["small"]}))
    assert path.read_bytes() == before


def test_two_processes_do_not_write_one_file(tmp_path):
    path = tmp_path / "o.jsonl"
    with (
        OutcomesFile(path, MANIFEST),
        pytest.raises(OutcomesError, match="another process is writing it"),
    ):
        OutcomesFile(path, MANIFEST)
    with OutcomesFile(path, MANIFEST) as file:
        assert not file.rows


def test_a_place_that_cannot_be_written_is_named_at_once(tmp_path):
    with pytest.raises(ResultFileError, match="there is no folder"):
        OutcomesFile(tmp_path / "nowhere" / "o.jsonl", MANIFEST)
    with pytest.raises(OutcomesError, match=r"o\.jsonl\.gz: outcomes are collected in a file that"):
        OutcomesFile(tmp_path / "o.jsonl.gz", MANIFEST)
    (tmp_path / "o.jsonl").mkdir()
    with pytest.raises(OutcomesError, match=r"o\.jsonl: cannot be written"):
        OutcomesFile(tmp_path / "o.jsonl", MANIFEST)
