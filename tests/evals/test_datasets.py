import json
from collections import Counter
from itertools import combinations

import pytest

from evals import arithmetic
from evals.datasets import DatasetError, load

KINDS = ("sums", "products", "classes", "choices", "extraction")

ROW = {
    "id": "a",
    "kind": "sums",
    "split": "fit",
    "messages": [{"role": "user", "content": "1 + 1"}],
    "max_tokens": 8,
    "reference": 2,
    "scorer": "number",
}


@pytest.fixture(scope="module")
def prompts():
    return load()


def written(tmp_path, *rows):
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_each_half_has_24_prompts_of_each_of_five_kinds(prompts):
    counted = Counter((prompt.kind, prompt.split) for prompt in prompts)
    assert counted == {(kind, split): 24 for kind in KINDS for split in ("fit", "show")}


def test_a_half_is_loaded_alone(prompts):
    show = load(split="show")
    assert len(show) == 120
    assert {prompt.split for prompt in show} == {"show"}


def test_no_prompt_is_asked_twice(prompts):
    asked = Counter(prompt.messages[-1]["content"].casefold() for prompt in prompts)
    assert max(asked.values()) == 1


def shingles(text):
    words = "".join(mark if mark.isalnum() else " " for mark in text.casefold()).split()
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


@pytest.mark.parametrize("kind", ["classes", "choices", "extraction"])
def test_no_two_written_prompts_are_nearly_the_same(prompts, kind):
    """Word triples in common, those of the instructions left out, over triples in either."""
    texts = {p.id: shingles(p.messages[-1]["content"]) for p in prompts if p.kind == kind}
    common = Counter(shingle for text in texts.values() for shingle in text)
    own = {name: {s for s in text if common[s] < 4} for name, text in texts.items()}
    for (one, mine), (other, theirs) in combinations(own.items(), 2):
        overlap = len(mine & theirs) / max(1, len(mine | theirs))
        assert overlap < 0.3, f"{one} and {other} share {overlap:.0%}"


def test_no_exercise_comes_twice_with_its_operands_swapped(prompts):
    exercises = [
        (prompt.kind, *sorted(word.strip(".") for word in prompt.messages[-1]["content"].split()))
        for prompt in prompts
        if prompt.scorer == "number"
    ]
    assert len(exercises) == len(set(exercises)) == 96


def test_exercises_are_those_of_the_fixed_seed_and_their_answers_are_right(prompts):
    made = {row["id"]: row for row in arithmetic.rows()}
    stored = {prompt.id: prompt for prompt in prompts if prompt.scorer == "number"}
    assert stored.keys() == made.keys()
    for name, prompt in stored.items():
        text = prompt.messages[-1]["content"]
        assert text == made[name]["messages"][0]["content"]
        sum_of = text.removeprefix("Work out ").removesuffix(". Reply with the number only.")
        assert prompt.reference == eval(sum_of)  # noqa: S307 - our own exercises


def test_every_reference_passes_its_own_scorer(prompts):
    for prompt in prompts:
        reference = prompt.reference
        said = {
            "number": str,
            "choice": str,
            "label": lambda value: value["label"],
            "json": json.dumps,
        }[prompt.scorer](reference)
        assert prompt.right(said), prompt.id
        assert not prompt.right("I do not know."), prompt.id


@pytest.mark.parametrize("split", ["fit", "show"])
def test_right_letters_are_spread_evenly(prompts, split):
    letters = Counter(p.reference for p in prompts if p.kind == "choices" and p.split == split)
    assert letters == {"A": 6, "B": 6, "C": 6, "D": 6}


def test_each_question_offers_four_different_options(prompts):
    for prompt in (p for p in prompts if p.kind == "choices"):
        lines = prompt.messages[-1]["content"].split("\n")
        options = [line[3:] for line in lines if line[:3] in {"A. ", "B. ", "C. ", "D. "}]
        assert len(set(options)) == 4, prompt.id


def test_each_label_offered_is_in_the_prompt_and_each_set_comes_in_both_halves(prompts):
    sets = {"fit": Counter(), "show": Counter()}
    for prompt in (p for p in prompts if p.kind == "classes"):
        labels = tuple(prompt.reference["labels"])
        assert all(name in prompt.messages[-1]["content"] for name in labels), prompt.id
        sets[prompt.split][labels] += 1
    assert sets["fit"] == sets["show"]


def test_extracted_objects_fit_the_schema_that_their_prompt_asks_for(prompts):
    import jsonschema_rs

    for prompt in (p for p in prompts if p.kind == "extraction"):
        schema = prompt.response_format["json_schema"]["schema"]
        jsonschema_rs.validate(schema, prompt.reference)
        assert set(schema["required"]) == set(prompt.reference)
        assert all(name in prompt.messages[-1]["content"] for name in schema["required"])


def test_a_prompt_is_asked_greedily_with_its_limit_and_format(prompts):
    prompt = next(p for p in prompts if p.kind == "extraction")
    assert prompt.params() == {
        "temperature": 0,
        "max_tokens": 128,
        "response_format": prompt.response_format,
    }
    assert prompt.request().messages == prompt.messages


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"id": "b",', r":2:12: not JSON"),
        ("[1]", r":2: a line must be a JSON object"),
        ({**ROW, "id": "b", "colour": 1}, r":2: colour: no such field"),
        ({name: value for name, value in ROW.items() if name != "kind"}, r":2: kind: missing"),
        ({**ROW, "id": ""}, r":2: id: must be a text, not ''"),
        (
            {**ROW, "id": "b", "split": "half"},
            r":2: split: must be one of fit, calibrate, test, show",
        ),
        ({**ROW, "id": "b", "split": ["fit"]}, r":2: split: must be"),
        ({**ROW, "id": "b", "scorer": "taste"}, r":2: scorer: must be one of number"),
        ({**ROW, "id": "b", "max_tokens": 0}, r":2: max_tokens: must be a positive whole number"),
        ({**ROW, "id": "b", "messages": []}, r":2: messages: must be"),
        ({**ROW, "id": "b", "messages": [{"role": "user"}]}, r":2: messages: must be"),
        ({**ROW, "id": "b", "response_format": "json"}, r":2: response_format: must be an object"),
        ({**ROW, "id": "b", "reference": "2"}, r":2: reference: must suit the scorer 'number'"),
        ({**ROW, "id": "b", "scorer": "choice"}, r":2: reference: must suit the scorer 'choice'"),
        (
            {**ROW, "id": "b", "scorer": "label", "reference": {"label": "x", "labels": ["y"]}},
            r":2: reference: must suit",
        ),
        (
            {**ROW, "id": "b", "scorer": "phrase", "reference": {"accept": []}},
            r":2: reference: must suit the scorer 'phrase'",
        ),
        (
            {**ROW, "id": "b", "scorer": "text", "reference": {"fold": True}},
            r":2: reference: must suit the scorer 'text'",
        ),
        (
            {**ROW, "id": "b", "scorer": "code", "reference": {"tests": ""}},
            r":2: reference: must suit the scorer 'code'",
        ),
        ({**ROW, "id": "b", "group": 3}, r":2: group: must be a text, not 3"),
        (ROW, r":2: id: 'a' is already that of line 1"),
        (
            {**ROW, "id": "b", "split": "show"},
            r":2: messages: the same as line 1, which is in the split 'fit'",
        ),
    ],
)
def test_a_mistake_is_named_by_file_line_and_field(tmp_path, row, said):
    path = written(tmp_path, ROW, row)
    with pytest.raises(DatasetError, match=f"prompts.jsonl{said}"):
        load(path)


def test_a_group_stays_in_one_split(tmp_path):
    def row(name, split):
        messages = [{"role": "user", "content": name}]
        return {**ROW, "id": name, "group": "sums", "split": split, "messages": messages}

    assert len(load(written(tmp_path, row("a", "fit"), row("b", "fit")))) == 2
    with pytest.raises(DatasetError, match=r":2: group: the same as line 1, which is in .* 'fit'"):
        load(written(tmp_path, row("a", "fit"), row("b", "test")))


def test_blank_lines_are_passed_over(tmp_path):
    assert len(load(written(tmp_path, ROW, "", {**ROW, "id": "b"}))) == 2


def test_a_file_that_is_missing_or_empty_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"none\.jsonl: cannot be read"):
        load(tmp_path / "none.jsonl")
    with pytest.raises(DatasetError, match="holds no prompts"):
        load(written(tmp_path, ""))
