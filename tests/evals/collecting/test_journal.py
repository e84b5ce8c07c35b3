from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.types import Usage
from evals.collecting.journal import Answered, Journal, Judged, request_hash
from evals.files import ResultFileError
from evals.outcomes import OutcomesError
from tests.evals.outcomes import prompt

ANSWER = Answered(
    request="r",
    tier="small",
    model="m",
    text="\u00fc\n4",
    finish_reason=None,
    usage=Usage(input=10, output=2),
    logprobs=[["4", -0.05, [["4", -0.05]]]],
    dollars=Decimal("2.8E-7"),
    seconds=0.5,
    first_token_seconds=None,
)
VERDICT = Judged(
    request="r", tier="small", answer="h", judge="sound 1", score=None, reason="cannot tell"
)


def test_what_was_written_is_read_again(tmp_path):
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append(ANSWER)
        journal.append(VERDICT)
    with Journal(tmp_path / "j.jsonl") as journal:
        assert journal.answer("r", "small", "m") == ANSWER
        assert journal.lines[VERDICT.key] == VERDICT
        assert journal.answer("r", "small", "another") is None


def test_a_line_that_was_being_written_is_cut_off(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path) as journal:
        journal.append(ANSWER)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"answer","requ')
    with Journal(path) as journal:
        assert list(journal.lines) == [ANSWER.key]
    assert path.read_bytes() == whole


def test_two_processes_do_not_write_one_journal(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path), pytest.raises(OutcomesError, match="another process is writing it"):
        Journal(path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", r"j\.jsonl:2: not JSON"),
        ("[1]", r"j\.jsonl:2: a line must be a JSON object"),
        ('{"kind": "tea"}', r"j\.jsonl:2: kind: must be one of answer, verdict, estimate"),
        ('{"kind": "answer", "colour": 1}', r"j\.jsonl:2: colour: no such field"),
        ('{"kind": "verdict", "request": "r"}', r"j\.jsonl:2: answer: missing"),
        (
            '{"kind":"verdict","request":"r","tier":"t","answer":"a","judge":"j","dollars":"x"}',
            r"j\.jsonl:2: usage or dollars: no such numbers",
        ),
    ],
)
def test_a_line_at_fault_is_named(tmp_path, line, complaint):
    path = tmp_path / "j.jsonl"
    with Journal(path):
        pass
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(OutcomesError, match=complaint):
        Journal(path)


def test_another_file_is_not_taken_for_a_journal(tmp_path):
    (tmp_path / "j.jsonl").write_text('{"kind": "manifest"}\n')
    with pytest.raises(OutcomesError, match=r"j\.jsonl:1: no journal"):
        Journal(tmp_path / "j.jsonl")
    with pytest.raises(ResultFileError, match="there is no folder"):
        Journal(tmp_path / "none" / "j.jsonl")


def test_what_is_asked_makes_the_hash_and_nothing_else():
    asked = prompt("p-1")
    assert request_hash(asked) == request_hash(replace(asked, id="x", kind="k", reference=7))
    assert request_hash(asked) != request_hash(replace(asked, max_tokens=9))
    assert request_hash(asked) != request_hash(prompt("p-2"))


def test_half_a_surrogate_pair_does_not_cost_the_journal_and_other_bytes_are_named(tmp_path):
    path, half = tmp_path / "j.jsonl", replace(ANSWER, text="a \ud83d")
    for _ in range(2):
        with Journal(path) as journal:
            journal.append(half)
            assert journal.answer("r", "small", "m") == half
    path.write_bytes(path.read_bytes() + b"\xff\n")
    with pytest.raises(OutcomesError, match=r"j\.jsonl: not UTF-8"):
        Journal(path)
