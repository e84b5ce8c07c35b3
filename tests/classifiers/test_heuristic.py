import asyncio

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest
from classifiers.heuristic import HeuristicEstimator
from classifiers.text import last_ask

TIERS = {"small": [0.9, 0.3], "large": [0.97, 0.6]}


def estimate(request):
    (beliefs,) = asyncio.run(HeuristicEstimator(tiers=TIERS).estimate([request]))
    return beliefs


def difficulty(text):
    request = ChatRequest(id="r", messages=[{"role": "user", "content": text}])
    return estimate(request).features["difficulty"]


@pytest.mark.parametrize(
    ("easy", "hard"),
    [
        ("Say hello.", "What is 84 times 37?"),
        ("What is 12 + 5?", "What is 312 * 845?"),
        ("Name a colour.", "Prove step by step that the square root of 2 is irrational."),
        ("Name a colour.", "Refactor this:\n```\ndef f(x):\n    return x\n```"),
    ],
)
def test_harder_looking_asks_are_harder(easy, hard):
    assert difficulty(easy) < difficulty(hard)


def test_a_tiers_probability_lies_between_its_ends():
    request = ChatRequest(id="r", messages=[{"role": "user", "content": "prove it " * 900}])
    mean = estimate(request).mean
    assert 0.3 <= mean["small"] <= 0.9
    assert 0.6 <= mean["large"] <= 0.97


@pytest.mark.parametrize("ends", [[0.3, 0.9], [0.9], [1.2, 0.3], [0.9, -0.1]])
def test_ends_that_are_no_probabilities_are_refused(ends):
    with pytest.raises(ConfigError, match="small"):
        HeuristicEstimator(tiers={"small": ends})


@pytest.mark.parametrize(
    ("messages", "ask"),
    [
        ([], ""),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "a"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "  "}], "a"),
        ([{"role": "user", "content": [{"type": "text", "text": "p"}, {"type": "x"}]}], "p"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "result"}], "a"),
        ([{"role": "user", "content": None}], ""),
    ],
)
def test_the_last_human_ask_is_what_is_looked_at(messages, ask):
    assert last_ask(messages) == ask
