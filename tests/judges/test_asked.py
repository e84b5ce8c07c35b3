import math

import pytest

from cascade.types import ChatRequest, Choice, Completion, Verdict
from judges.asked import AskedJudge, features_of
from judges.format import FormatJudge
from judges.panel import PanelJudge

ANSWER = Completion(choices=(Choice(text="4", finish_reason="stop"),), tier="small")


def request(ask, **fields):
    return ChatRequest(id="r", messages=[{"role": "user", "content": ask}], **fields)


def seen(ask, **fields):
    return features_of(request(ask, **fields))


def test_a_sum_is_told_by_its_figures():
    found = seen("Compute 12 * 3,405 + 7.5. Only the number, please.")
    assert found["numbers"] == 3
    assert found["operations"] == 2
    assert found["products"] == 1
    assert found["fractions"] == 1
    assert found["most_digits"] == 4
    assert found["largest"] == pytest.approx(math.log1p(3405))
    assert found["quantity"] > 0
    assert found["brief"] == 1


def test_larger_numbers_are_seen_to_be_larger():
    assert seen("12 * 34")["largest"] < seen("1234 * 5678")["largest"]
    assert seen("12 * 34")["digits"] < seen("1234 * 5678")["digits"]


def test_a_schema_is_told_by_its_fields():
    fields = {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "kind": {"enum": ["a", "b"]},
        "parts": {"type": "array"},
    }
    form = {"type": "json_schema", "json_schema": {"schema": {"properties": fields}}}
    found = seen("Take it apart.", params={"response_format": form})
    assert (found["json"], found["fields"]) == (1, 4)
    assert (found["typed_fields"], found["chosen_fields"], found["deep_fields"]) == (1, 1, 1)
    assert seen("Take it apart.")["json"] == 0


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        ("Write a function that adds two numbers.", "code"),
        ("Is this review positive, negative or neutral?", "choice"),
        ("Rewrite the sentence in the past tense.", "change"),
        ("Extract the names.", "extract"),
        ("Who wrote it?", "who"),
        ("If it rains, say so, otherwise nothing.", "conditions"),
        ("Use at most five words and do not repeat any.", "exact"),
    ],
)
def test_what_is_wanted_is_told_by_its_words(ask, name):
    assert seen(ask)[name] > 0
    assert seen("Good morning.")[name] == 0


def test_the_last_human_ask_counts_and_the_system_message_only_by_its_length():
    messages = [
        {"role": "system", "content": "Compute 1 + 1 in Python."},
        {"role": "user", "content": "2 + 2"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "And who was Ada Lovelace?"},
    ]
    found = features_of(ChatRequest(id="r", messages=messages))
    assert (found["operations"], found["code"], found["who"]) == (0, 0, 1)
    assert found["told_length"] > 0
    assert found["turns"] == pytest.approx(math.log1p(4))


@pytest.mark.parametrize(
    "ask", ["", " ", "?" * 9999, "9" * 5000, "1e999 - 2", "\ud55c\uad6d\uc5b4", "(((", "\x00"]
)
@pytest.mark.parametrize(
    "form", [None, {}, {"type": "json_schema", "json_schema": {"schema": {"properties": [1]}}}]
)
def test_features_are_the_same_and_finite_for_any_request(ask, form):
    found = seen(ask, params={"response_format": form})
    assert found.keys() == seen("How many?").keys()
    assert all(math.isfinite(value) for value in found.values())


async def test_it_says_nothing_of_the_answer_and_never_gives_a_score():
    judge = AskedJudge()
    verdict = await judge.judge(request("2 + 2"), ANSWER)
    assert verdict.score is None
    assert verdict.features["operations"] == 1
    other = Completion(choices=(Choice(text="something else"),))
    assert await judge.judge(request("2 + 2"), other) == verdict


async def test_a_panel_without_a_model_does_not_wait_for_its_score():
    panel = PanelJudge(name="p", members=[AskedJudge(name="asked"), FormatJudge(name="form")])
    verdict = await panel.judge(request("2 + 2"), ANSWER)
    assert verdict.score == 1.0
    assert verdict.features["asked.operations"] == 1


async def test_a_panel_of_nothing_else_cannot_tell():
    panel = PanelJudge(name="p", members=[AskedJudge(name="asked")])
    assert isinstance(verdict := await panel.judge(request("2 + 2"), ANSWER), Verdict)
    assert verdict.score is None
