import gzip
import json

import pytest

from cascade.types import Usage
from evals.outcomes import OutcomesError, prompts_sha256
from evals.outcomes_lines import line_of, read
from tests.evals.outcomes import prompt
from tests.evals.rows import MANIFEST, answer, judgement, sample

ROWS = (answer(), answer(tier="large", logprobs=None), sample(), sample(index=1), judgement())


def written(path, *rows):
    lines = [row if isinstance(row, str) else line_of(row) for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_what_is_written_is_read_again(tmp_path):
    outcomes = read(written(tmp_path / "o.jsonl", MANIFEST, *ROWS))
    assert outcomes.manifest == MANIFEST
    assert tuple(outcomes.rows.values()) == ROWS


def test_a_gzipped_file_is_read_as_a_plain_one(tmp_path):
    plain = written(tmp_path / "o.jsonl", MANIFEST, *ROWS)
    packed = tmp_path / "o.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed) == read(plain)


def test_rows_are_found_by_tier_judge_and_prompt(tmp_path):
    rows = (answer("p-2"), sample(index=1), sample(index=0), judgement(judge="p_true", by="small"))
    outcomes = read(written(tmp_path / "o.jsonl", MANIFEST, *ROWS[:2], *rows))
    assert list(outcomes.answers("small")) == ["p-1", "p-2"]
    assert list(outcomes.answers("large")) == ["p-1"]
    assert [one.index for one in outcomes.samples("small")["p-1"]] == [0, 1]
    assert outcomes.judgements("p_true", by="small", tier="small") == {"p-1": rows[-1]}
    assert outcomes.judgements("p_true", by="large", tier="small") == {}


def test_an_unreported_count_is_not_written_as_zero(tmp_path):
    row = answer(usage=Usage(input=3))
    assert '"usage":{"input":3}' in line_of(row)
    assert read(written(tmp_path / "o.jsonl", MANIFEST, row)).rows[row.key].usage.output is None


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path):
    row = answer(text="one\u2028two\x85three")
    assert read(written(tmp_path / "o.jsonl", MANIFEST, row)).rows[row.key] == row


def changed(row, **fields):
    content = {**json.loads(line_of(row)), **fields}
    return json.dumps({name: value for name, value in content.items() if value != "gone"}) + "\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"kind":', r":3:9: not JSON"),
        ("[1]\n", r":3: a line must be a JSON object"),
        (changed(answer(), kind="taste"), r":3: kind: must be one of answer, sample, judge"),
        (changed(answer(), colour=1), r":3: colour: no such field"),
        (changed(answer(), right="gone"), r":3: right: missing"),
        (changed(answer(), right=1), r":3: right: must be true or false, not 1"),
        (changed(answer(), seconds="fast"), r":3: seconds: must be a number"),
        (changed(answer(), usage={"cake": 1}), r":3: usage: has a field that is no count"),
        (changed(judgement(), score=1.5), r":3: score: must be in \[0, 1\], not 1.5"),
        (changed(judgement(), score=float("nan")), r":3: score: must be in \[0, 1\], not nan"),
        (line_of(ROWS[0]), r":3: answer p-1 small is there twice"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_field(tmp_path, line, said):
    path = written(tmp_path / "o.jsonl", MANIFEST, ROWS[0], line)
    with pytest.raises(OutcomesError, match=rf"o\.jsonl{said}"):
        read(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "holds no outcomes"),
        (line_of(ROWS[0]), ":1: kind: the first line must be the manifest"),
        (changed(MANIFEST, format=0), ":1: format: 0 is not 1; collect the outcomes again"),
        (changed(MANIFEST, tiers="gone"), ":1: tiers: missing"),
        (changed(MANIFEST, tiers=["small"]), ":1: tiers: must be an object"),
    ],
)
def test_a_file_without_a_good_manifest_is_refused(tmp_path, line, said):
    with pytest.raises(OutcomesError, match=said):
        read(written(tmp_path / "o.jsonl", line))


def test_a_file_that_is_missing_or_not_gzip_is_named(tmp_path):
    with pytest.raises(OutcomesError, match=r"none\.jsonl: cannot be read"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(OutcomesError, match=r"o\.gz: cannot be read"):
        read(written(tmp_path / "o.gz", "plain"))


def test_the_hash_of_prompts_is_of_what_is_asked_whatever_their_order_or_reference():
    one, two = prompt("p-1"), prompt("p-2")
    assert prompts_sha256([one, two]) == prompts_sha256([two, prompt("p-1", reference=5)])
    assert prompts_sha256([one]) != prompts_sha256([one, two])
    assert prompts_sha256([one]) != prompts_sha256([prompt("p-1", response_format={"type": "x"})])
