import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.scorers import (
    SCORERS,
    choice,
    code,
    exact,
    json_object,
    label,
    number,
    phrase,
    regex,
    schema,
    suits_schema,
    text,
)

LABELS = ["positive", "negative", "neutral"]


@pytest.mark.parametrize(
    "answer",
    [
        "43",
        " 43.\n",
        "The answer is 43",
        "20 + 23 = 43",
        "**43**",
        "$43",
        "43.0",
        "=43!",
        "\\boxed{43}",
        "It is 43, of course.",
    ],
)
def test_the_last_number_of_the_answer_counts(answer):
    assert number(answer, 43)


@pytest.mark.parametrize(
    "answer", ["", "forty-three", "44", "430", "4 3", "43 is wrong, it is 44", "43a", "0.43", "-43"]
)
def test_another_number_or_none_is_wrong(answer):
    assert not number(answer, 43)


@pytest.mark.parametrize(
    ("answer", "reference"),
    [("1,234", 1234), ("12,345,678", 12345678), ("-7", -7), ("\u22127", -7), ("3.50", 3.5)],
)
def test_numbers_are_read_as_people_write_them(answer, reference):
    assert number(answer, reference)


def test_a_minus_between_two_numbers_is_no_sign():
    assert number("12-7", 7)
    assert number("12 - 5 = 7", 7)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{}", "It is {}.", "{:,}", "so {:,}!"]))
def test_any_whole_number_is_found_again(value, dress):
    assert number(dress.format(value), value)
    assert not number(dress.format(value), value + 1)


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        " B ",
        "B.",
        "B)",
        "(B)",
        "**B**",
        "B. Paris",
        "B: Paris",
        "B Paris",
        "B\nbecause it is so",
        "The answer is B",
        "The correct answer is (B).",
        "Answer: B",
        "Option B",
        "the right choice is **B**, Paris",
    ],
)
def test_a_letter_is_read_however_it_is_dressed(answer):
    assert choice(answer, "B")


@pytest.mark.parametrize(
    "answer",
    ["", "Paris", "A", "b", "A or B", "Bread", "The answer is A", "B. But the answer is C", "ABCD"],
)
def test_another_letter_two_letters_or_none_are_wrong(answer):
    assert not choice(answer, "B")


def test_an_article_is_no_letter():
    assert not choice("A dog barks", "A")
    assert choice("A Dog", "A")


@pytest.mark.parametrize(
    "answer",
    ["positive", "Positive.", "**positive**", "The sentiment is positive", "Label: positive"],
)
def test_a_label_is_right_when_it_is_the_only_one_mentioned(answer):
    assert label(answer, {"label": "positive", "labels": LABELS})


@pytest.mark.parametrize(
    "answer", ["", "good", "negative", "positive or neutral", "positively", "nonpositive"]
)
def test_another_label_or_several_are_wrong(answer):
    assert not label(answer, {"label": "positive", "labels": LABELS})


REFERENCE = {"name": "Old Mill", "total": 12.5, "count": 3, "free": False, "tags": ["a", "b"]}


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Old Mill", "total": 12.5, "count": 3, "free": false, "tags": ["a", "b"]}',
        '{"tags":["A", "b."], "free":false, "count":3.0, "total": 12.50, "name": "the  Old mill"}',
        '```json\n{"name":"Old Mill.","total":12.5,"count":3,"free":false,"tags":["a","b"]}\n```',
    ],
)
def test_an_object_is_compared_field_by_field(answer):
    assert json_object(answer, REFERENCE)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "New Mill"},
        {"total": 12.51},
        {"total": "12.5"},
        {"count": True},
        {"free": 0},
        {"free": None},
        {"tags": ["b", "a"]},
        {"tags": ["a"]},
        {"more": 1},
    ],
)
def test_any_other_value_type_or_key_is_wrong(change):
    assert not json_object(json.dumps({**REFERENCE, **change}), REFERENCE)


@pytest.mark.parametrize("answer", ["", "{", "[]", "12", "null", "NaN", "[" * 100_000, '{"name"}'])
def test_what_is_no_object_is_wrong(answer):
    assert not json_object(answer, REFERENCE)


def test_a_missing_key_is_wrong():
    assert not json_object('{"name": "Old Mill"}', REFERENCE)


@pytest.mark.parametrize(
    "answer",
    ["Lisboa", "lisbóa.", "The capital is Lisboa", "**Lisboa**", "Lisbon, or Lisboa in Portuguese"],
)
def test_a_phrase_is_right_wherever_it_stands_in_a_short_answer(answer):
    assert phrase(answer, {"accept": ["Lisboa", "Lisbon"]})


@pytest.mark.parametrize("answer", ["", "Porto", "Lisboans", "no " * 20 + "Lisboa"])
def test_a_phrase_that_is_missing_part_of_a_word_or_in_a_lecture_is_wrong(answer):
    assert not phrase(answer, {"accept": ["Lisboa"]})


def test_case_matters_to_a_phrase_that_says_so():
    assert phrase("The symbol is Au.", {"accept": ["Au"], "case": True})
    assert not phrase("The symbol is AU.", {"accept": ["Au"], "case": True})


def test_a_text_is_compared_without_its_dress_but_with_its_case_and_marks():
    wanted = {"accept": ["Red apples.", "apples"]}
    for right in ("Red apples.", ' "Red  apples." ', "```\nRed apples.\n```", "apples\n"):
        assert text(right, wanted)
    for wrong in ("red apples.", "Red apples", "Here you are: apples", "", "Red\napples."):
        assert not text(wrong, wanted)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("- Ham\n- eggs", True),
        ("- Ham\n- eggs\n- jam", False),
        ("- Ham eggs", False),
        ("- Ham\n- eggs with salt and pepper", False),
        ("- Ham\n- spam eggs", False),
    ],
)
def test_every_check_of_a_text_must_hold(answer, right):
    checks = {"contains": ["ham", "eggs"], "excludes": ["spam"], "lines": 2, "max_words": 5}
    assert text(answer, {**checks, "min_words": 4, "matches": r"\A- ", "fold": True}) is right


DOUBLE = {"tests": "assert double(2) == 4\nassert double(0) == 0"}


@pytest.mark.parametrize(
    "answer",
    [
        "def double(n):\n    return 2 * n",
        "Here it is:\n```python\ndef double(n):\n    return 2 * n\n```\nIt doubles.",
        "```\ndef double(n):\n    return n + n\n",
    ],
)
def test_code_is_right_when_its_tests_pass(answer):
    assert code(answer, DOUBLE)


@pytest.mark.parametrize(
    "answer",
    ["", "def double(n):\n    return n", "def double(n) return", "import sys; sys.exit(0)"],
)
def test_code_that_fails_does_not_parse_or_leaves_early_is_wrong(answer):
    assert not code(answer, DOUBLE)


@given(st.text())
def test_every_quick_scorer_takes_any_text(answer):
    references = {
        "number": 1,
        "choice": "A",
        "label": {"label": "positive", "labels": LABELS},
        "json": REFERENCE,
        "phrase": {"accept": ["a"]},
        "text": {"accept": ["a"]},
        "exact": "a",
        "regex": "a+",
        "schema": SCHEMA,
    }
    assert references.keys() == SCORERS.keys() - {"code"}
    for name, reference in references.items():
        assert SCORERS[name](answer, reference) in {True, False}


@pytest.mark.parametrize("answer", ["Yes, it is.", ' "Yes,  it is." ', "```\nYes, it is.\n```"])
def test_the_very_text_is_exact_however_it_is_wrapped(answer):
    assert exact(answer, "Yes, it is.")
    assert not exact(answer, "yes, it is.")


def test_a_pattern_is_looked_for_in_the_whole_answer():
    assert regex("The code is AB-12.", r"[A-Z]{2}-\d+")
    assert regex(" 12\n", r"^\d+$")
    assert not regex("a 12", r"^\d+$")


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        ('{"n": 1}', True),
        ('```json\n{"n": 1, "m": "x"}\n```', True),
        ('{"n": "1"}', False),
        ("{}", False),
        ("n is 1", False),
    ],
)
def test_an_answer_keeps_to_a_schema_or_not(answer, fits):
    assert schema(answer, SCHEMA) is fits


def test_what_is_no_schema_is_noticed():
    assert suits_schema(SCHEMA)
    assert not suits_schema({"type": "nothing"})
    assert not suits_schema("object")
