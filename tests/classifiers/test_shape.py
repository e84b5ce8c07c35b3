import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.features import TEXT
from classifiers.read import read
from classifiers.shape import shape
from tests.learning import ask

CHOICES = "Which one?\nA. {}\nB. {}"


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("log_stem", "Who?", "Who wrote this play?"),
        ("log_sentences", "Who wrote it?", "It is old. It is long. Who wrote it?"),
        ("sentence_words", "Who? What? Why?", "Who wrote all of this long play?"),
        ("ends_asking", "The sky is", "What is the sky?"),
        ("digits", "Add two", "Add 2 to 12"),
        ("capitalised", "the rivers of europe", "the Rhine and the Rhone"),
        ("distinct_words", "go go go", "go come stay"),
        ("common_words", "explain photosynthesis", "what is the cause of it"),
        ("long_words", "a cat sat", "electromagnetic induction"),
        ("person", "A dog barks.", "A patient coughs."),
        ("term", "What is it?", "What is it called?"),
        ("degree", "Which is red?", "Which is most red?"),
        ("log_choice", CHOICES.format("a", "b"), CHOICES.format("a house", "a garden")),
        ("choice_spread", CHOICES.format("ab", "cd"), CHOICES.format("ab", "a long garden path")),
        ("choices_short", CHOICES.format("house", "tree"), CHOICES.format("1", "2")),
        ("choices_capital", CHOICES.format("rome", "paris"), CHOICES.format("Rome", "Paris")),
        ("choices_closed", CHOICES.format("It is", "No"), CHOICES.format("It is.", "No.")),
        ("choices_numeric", CHOICES.format("one", "two"), CHOICES.format("11", "22")),
        ("choices_whole", CHOICES.format("x", "y"), CHOICES.format("x", "None of them")),
        ("choices_repeat", CHOICES.format("red", "two"), CHOICES.format("which", "one")),
    ],
)
def test_a_question_has_more_of_what_it_shows(name, less, more):
    assert shape(less)[name] < shape(more)[name]


def test_what_stands_in_the_choices_does_not_count_as_the_question():
    alone = shape("Which river?")
    assert shape("Which river?\nA. The Rhine, 1200 km.\nB. The Po.")["digits"] == alone["digits"]


def test_a_request_has_its_shape_among_its_features_and_its_domain_does_not():
    found = read(ask("Which river?\nA. The Rhine\nB. The Po")).features
    assert shape("").keys() <= found.keys()
    assert shape("").keys().isdisjoint(TEXT)


@given(st.text())
def test_any_text_has_the_same_numbers_by_name_and_none_is_beyond_its_range(text):
    found = shape(text)
    assert found.keys() == shape("").keys()
    logs = {name for name in found if name.startswith("log_")} | {"sentence_words"}
    assert all(0.0 <= found[name] <= 1.0 for name in found.keys() - logs - {"choice_spread"})


def test_a_text_as_long_as_is_read_takes_less_than_a_few_milliseconds():
    text = "A. one 2 Three. " * 125
    shape(text)
    begun = time.perf_counter()
    for _ in range(10):
        shape(text)
    assert (time.perf_counter() - begun) / 10 < 0.02
