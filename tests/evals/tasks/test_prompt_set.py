import json
from collections import Counter
from itertools import combinations

import jsonschema_rs
import pytest

from evals.datasets import TASKS, load
from evals.scorers import SCORERS
from evals.tasks import arithmetic, make

KINDS = ("arithmetic", "extraction", "classification", "fact", "code", "rewriting")


@pytest.fixture(scope="module")
def prompts():
    return load(TASKS)


def words(prompt):
    text = prompt.messages[-1]["content"]
    return "".join(mark if mark.isalnum() else " " for mark in text.casefold()).split()


def shingles(prompt):
    own = words(prompt)
    return frozenset(tuple(own[i : i + 4]) for i in range(len(own) - 3))


def test_the_file_is_what_the_sources_make():
    assert [json.loads(line) for line in TASKS.read_text("utf-8").splitlines()] == list(make.rows())


def test_there_are_at_least_a_hundred_prompts_of_each_of_six_kinds(prompts):
    counted = Counter(prompt.kind for prompt in prompts)
    assert set(counted) == set(KINDS)
    assert min(counted.values()) >= 100
    assert sum(counted.values()) >= 700


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_split_about_as_intended(prompts, kind):
    parts = Counter(prompt.split for prompt in prompts if prompt.kind == kind)
    for part, share in make.SHARES.items():
        assert abs(parts[part] / parts.total() - share) < 0.1, part


def test_the_table_in_the_docs_is_the_one_that_making_the_file_prints():
    docs = (TASKS.parents[2] / "docs" / "outcomes.md").read_text("utf-8")
    for line in make.summary(list(make.rows())):
        assert line in docs


def test_the_split_depends_on_the_groups_name_alone():
    assert make.split("fact-capitals") == make.split("fact-capitals")
    parts = Counter(make.split(f"group {number}") for number in range(2000))
    for part, share in make.SHARES.items():
        assert abs(parts[part] / 2000 - share) < 0.04


def test_no_prompt_is_asked_twice(prompts):
    asked = Counter(json.dumps([" ".join(words(prompt)), prompt.group]) for prompt in prompts)
    assert max(asked.values()) == 1


def test_no_prompt_is_nearly_that_of_another_split(prompts):
    """Runs of four words in common over those in either, for prompts of different groups."""
    texts = [(prompt, shingles(prompt)) for prompt in prompts]
    for (one, mine), (other, theirs) in combinations(texts, 2):
        if one.split != other.split and mine & theirs:
            overlap = len(mine & theirs) / len(mine | theirs)
            assert overlap < 0.5, f"{one.id} and {other.id} share {overlap:.0%}"


def test_prompts_are_of_many_makes(prompts):
    roles = Counter(tuple(message["role"] for message in prompt.messages) for prompt in prompts)
    assert sum(n for made, n in roles.items() if made[0] == "system") > 50
    assert sum(n for made, n in roles.items() if "assistant" in made) > 30
    assert sum(len(str(prompt.messages)) > 1500 for prompt in prompts) > 10
    assert len({prompt.group for prompt in prompts}) > 150
    assert all(prompt.messages[-1]["role"] == "user" for prompt in prompts)


def test_labels_are_offered_by_the_prompt(prompts):
    for prompt in prompts:
        if prompt.kind == "classification":
            said = str(prompt.messages).casefold()
            assert all(name.casefold() in said for name in prompt.reference["labels"]), prompt.id


def test_extracted_objects_fit_their_schema_and_every_key_is_asked_for(prompts):
    for prompt in prompts:
        if prompt.kind == "extraction":
            schema = prompt.response_format["json_schema"]["schema"]
            jsonschema_rs.validate(schema, prompt.reference)
            assert set(schema["required"]) == set(prompt.reference)
            said = str([message["content"] for message in prompt.messages])
            assert all(name in said for name in schema["required"]), prompt.id


def test_every_reference_answers_its_own_prompt(prompts):
    for prompt in prompts:
        answers = {
            "number": [f"{prompt.reference}"],
            "json": [json.dumps(prompt.reference)],
            "label": [prompt.reference.get("label")] if prompt.scorer == "label" else [],
            "phrase": prompt.reference.get("accept") if prompt.scorer == "phrase" else [],
            "text": prompt.reference.get("accept", []) if prompt.scorer == "text" else [],
            "code": [],
        }[prompt.scorer]
        for answer in answers:
            assert prompt.right(answer), f"{prompt.id}: {answer}"
        assert not prompt.right(""), prompt.id


def test_the_written_solutions_pass_their_own_tests():
    items, rows = make.sources("code"), [row for row in make.rows() if row["kind"] == "code"]
    for item, row in zip(items, rows, strict=True):
        names = {}
        exec(f"{make.code_source(item)}\n{row['reference']['tests']}", names)  # noqa: S102 - ours
        assert item["def"].partition("(")[0] in names
        assert len(item["calls"]) >= 3


def test_half_of_the_code_prompts_show_examples(prompts):
    shown = [">>>" in prompt.messages[-1]["content"] for prompt in prompts if prompt.kind == "code"]
    assert abs(sum(shown) / len(shown) - 0.5) < 0.02


def test_every_scorer_of_the_set_exists_and_answers_are_short(prompts):
    assert {prompt.scorer for prompt in prompts} <= set(SCORERS)
    assert max(prompt.max_tokens for prompt in prompts if prompt.kind != "code") <= 150


def test_exercises_are_the_same_every_time_and_none_comes_twice():
    once = [(template.group, text, answer) for template, text, answer in arithmetic.exercises()]
    again = [(template.group, text, answer) for template, text, answer in arithmetic.exercises()]
    assert once == again
    assert len({text for _, text, _ in once}) == len(once)
    other = [text for _, text, _ in arithmetic.exercises(seed=1)]
    assert other != [text for _, text, _ in once]
