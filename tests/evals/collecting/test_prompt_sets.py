import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from evals.collecting.prompt_sets import (
    Reading,
    fields_of,
    prompt_set,
    prompts_of,
    refuse_without_grader,
)
from evals.datasets import DatasetError
from evals.tables.reading import turned

PLAIN = Reading(columns={})


def jsonl(tmp_path, *rows):
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_a_prompt_and_a_reference_are_enough(tmp_path):
    (found,) = prompt_set(jsonl(tmp_path, {"prompt": "Why?", "reference": "So."}), PLAIN)
    assert found.messages == [{"role": "user", "content": "Why?"}]
    assert (found.id, found.reference, found.scorer) == ("1", "So.", "exact")
    assert (found.group, found.kind, found.split, found.max_tokens) == ("", "", "", 256)


def test_a_row_may_say_everything(tmp_path):
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    row = {
        "id": "a",
        "messages": messages,
        "reference": {"tests": "assert f() == 1"},
        "scorer": "code",
        "group": "g",
        "session": "s",
        "kind": "code",
        "split": "train",
        "max_tokens": 9,
        "response_format": {"type": "json_object"},
    }
    (found,) = prompt_set(jsonl(tmp_path, row), PLAIN)
    assert found.messages == messages
    assert (found.group, found.session, found.split, found.max_tokens) == ("g", "s", "train", 9)
    assert found.params()["response_format"] == {"type": "json_object"}


def test_texts_of_csv_stand_for_what_their_scorer_takes(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(
        "q,a,how,limit\n"
        '2+2?,"1,004",number,8\n'
        "Which?,B,choice,8\n"
        'Shape?,"{""type"": ""object""}",schema,\n'
        "Year?,1999,exact,\n"
    )
    columns = fields_of(["prompt=q", "reference=a", "scorer=how", "max_tokens=limit"])
    found = prompt_set(str(path), Reading(columns=columns, max_tokens=64))
    assert [prompt.reference for prompt in found] == [1004, "B", {"type": "object"}, "1999"]
    assert [prompt.max_tokens for prompt in found] == [8, 8, 64, 64]


def test_a_data_set_of_the_hub_is_read_by_its_name_and_split(tmp_path):
    asked = []

    def load(name, split):
        asked.append((name, split))
        return [{"question": "2+2?", "answers": {"right": 4}}]

    reading = Reading(
        columns=fields_of(["prompt=question", "reference=answers.right"]), scorer="number"
    )
    (found,) = prompt_set("hf:someone/sums@test", reading, load)
    assert found.reference == 4
    prompt_set("hf:sums", reading, load)
    assert asked == [("someone/sums", "test"), ("sums", "train")]
    with pytest.raises(DatasetError, match="hf:sums: holds no rows"):
        prompt_set("hf:sums", reading, lambda *_: [])


def test_a_configuration_of_a_data_set_is_asked_for_by_its_name(monkeypatch):
    asked = []

    def load(path, name=None, *, split):
        asked.append((path, name, split))
        return [{"prompt": "2+2?", "reference": "4"}]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load))
    for source in ("hf:openai/gsm8k:main@test", "hf:sums"):
        assert len(prompt_set(source, PLAIN)) == 1
    assert asked == [("openai/gsm8k", "main", "test"), ("sums", None, "train")]


def test_the_missing_package_is_named_with_how_to_get_it():
    pytest.importorskip("importlib")
    try:
        import datasets  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(DatasetError, match="pip install datasets"):
            prompt_set("hf:sums", PLAIN)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"reference": "x"}, r"p\.jsonl:2: there is no prompt"),
        ({"prompt": "a", "scorer": "taste"}, r"p\.jsonl:2: scorer: must be one of number"),
        ({"prompt": "a", "scorer": "number", "reference": "many"}, r"p\.jsonl:2: reference: must"),
        ({"prompt": "a", "scorer": "regex", "reference": "("}, r"p\.jsonl:2: reference: must"),
        *(
            ({"prompt": "a", "scorer": scorer, "reference": wrong}, r"p\.jsonl:2: reference: must")
            for scorer, wrong in [
                ("number", "NaN"),
                ("label", {"label": 1, "labels": [1, 2]}),
                ("text", {"max_words": "five"}),
                ("text", {"matches": "("}),
                ("text", {"excludes": 3}),
                ("text", {"accept": 3, "max_words": 5}),
                ("similarity", {"text": "So.", "at_least": "high"}),
            ]
        ),
        (
            {"prompt": "a", "split": "half"},
            r"p\.jsonl:2: split: must be one of fit, train",
        ),
        ({"prompt": "a"}, r"p\.jsonl:2: reference: must suit the scorer 'exact', not None"),
        ({"prompt": "a", "reference": "x", "max_tokens": -1}, r"p\.jsonl:2: max_tokens: must be"),
        ({"messages": [{"role": "user"}], "reference": "x"}, r"p\.jsonl:2: messages: must be"),
        ({"messages": "[", "reference": "x"}, r"p\.jsonl:2: messages: not JSON"),
        ({"id": "1", "prompt": "a", "reference": "x"}, r"p\.jsonl:2: id: '1' is already that of"),
    ],
)
def test_a_row_at_fault_is_named_by_its_line_and_field(tmp_path, row, said):
    path = jsonl(tmp_path, {"id": "1", "prompt": "b", "reference": "y"}, row)
    with pytest.raises(DatasetError, match=said):
        prompt_set(path, PLAIN)


def test_a_column_that_is_not_there_is_named(tmp_path):
    path = jsonl(tmp_path, {"q": "a"})
    with pytest.raises(DatasetError, match=r"there is no column 'question' for prompt; q"):
        prompt_set(path, Reading(columns={"prompt": "question"}))
    with pytest.raises(DatasetError, match="cannot be read"):
        prompt_set(str(tmp_path / "none.jsonl"), PLAIN)


@pytest.mark.parametrize("pair", ["question=q", "prompt=", "prompt"])
def test_a_mapping_that_names_no_field_is_refused(pair):
    with pytest.raises(DatasetError, match="is not FIELD=COLUMN; the fields are prompt, id"):
        fields_of([pair])


def test_prompts_that_need_a_grader_are_refused_without_one():
    raw = turned(Path("p"), [(1, {"prompt": "a", "scorer": "judge"})])
    prompts = prompts_of(raw, PLAIN)
    refuse_without_grader(prompts, "large")
    with pytest.raises(DatasetError, match="prompt 1: the scorer 'judge' needs a model"):
        refuse_without_grader(prompts, None)
