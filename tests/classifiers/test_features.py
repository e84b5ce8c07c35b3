import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.types import ChatRequest
from classifiers.features import KNOWN, features_of, text_features
from classifiers.read import read
from classifiers.text import Asked
from tests.learning import ask


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("log_characters", "Say hello.", "Say hello to everybody in the room."),
        ("log_words", "Say hello.", "Say hello to everybody in the room."),
        ("log_numbers", "Add one and two.", "Add 12, 15 and 1,000.5."),
        ("log_questions", "Go.", "Really? Why?"),
        ("log_constraints", "Write a poem.", "Write exactly four lines, never rhyme, only nouns."),
        ("log_constraints", "시를 써 줘.", "반드시 네 줄 이상 써 줘."),
        ("log_choices", "Which?", "Which?\nA. one\nB. two\n(C) three"),
        ("log_maths", "Name a colour.", "Solve x^2 = 4 and compute the sum."),
        ("log_maths", "색을 말해 줘.", "평균과 확률을 계산해 줘."),
        ("log_blanks", "The sky is", "The sky is ____ and the sea ___."),
        ("log_capitals", "The usa and the un", "The USA and the UN"),
        ("negation", "Which is true?", "Which is NOT true?"),
        ("question_word", "Tell me the time.", "What is the time?"),
        ("question_word", "시간을 말해 줘.", "언제 시작했어?"),
        ("code", "Say hello.", "def f(x):\n    return x"),
        ("code", "Say hello.", "Look:\n```\nx\n```"),
        ("steps", "Say hello.", "Prove it step by step."),
        ("hangul", "hello", "안녕하세요"),
        ("han_kana", "hello", "こんにちは 世界"),
        ("latin", "Привет мир", "hello world"),
        ("punctuation", "one two", "one, two; (three)!"),
    ],
)
def test_a_text_has_more_of_what_it_shows(name, less, more):
    assert text_features(less)[name] < text_features(more)[name]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("log_tools", {"tools": [{"type": "function"}]}),
        ("json", {"params": {"response_format": {"type": "json_object"}}}),
        ("escalation", {"escalation": 0.5}),
        ("tag.team=search", {"tags": {"team": "search"}}),
    ],
)
def test_what_stands_around_the_text_counts(name, fields):
    plain, rich = ask("hi"), ask("hi", **fields)
    assert read(plain).features.get(name, 0.0) == 0.0
    assert read(rich).features[name] > 0.0


def test_a_plain_text_format_is_not_json():
    asked = ask("hi", params={"response_format": {"type": "text"}})
    assert read(asked).features["json"] == 0.0


def test_an_ask_that_refers_has_the_features_of_what_it_refers_to():
    messages = [
        {"role": "user", "content": "Prove that the sum of 12, 13 and 14 is odd, step by step."},
        {"role": "assistant", "content": "Shall I go on?"},
        {"role": "user", "content": "yes"},
    ]
    features = read(ChatRequest(id="r", messages=messages)).features
    assert features["refers"] == 1.0
    assert features["steps"] == 1.0
    assert features["log_numbers"] > 0.0


@given(st.text(max_size=300))
def test_any_text_has_every_feature_as_a_finite_number(text):
    found = features_of(ChatRequest(id="r", messages=()), Asked(text=text))
    assert found.keys() == KNOWN
    assert all(isinstance(value, float) and abs(value) < 100.0 for value in found.values())


@pytest.mark.parametrize("piece", ["a b ", "1 ", "\n \t", "한국어 ", "def (", "?!_", "{;\n"])
def test_a_text_of_any_length_takes_little_time(piece):
    text = piece * 100_000
    text_features(text)
    began = time.perf_counter()
    text_features(text)
    assert time.perf_counter() - began < 0.05  # about one millisecond; a busy machine takes more
