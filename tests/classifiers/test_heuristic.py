import asyncio

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest
from classifiers.heuristic import HeuristicEstimator

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


def beliefs_of(*texts, **fields):
    roles = ["user", "assistant"]
    messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
    return estimate(ChatRequest(id="r", messages=messages, **fields))


def test_two_words_after_a_hard_ask_look_as_hard():
    hard = "Refactor the parser step by step: it must handle each case without recursion."
    after = beliefs_of(hard, "All tests pass.", "commit it").features["difficulty"]
    assert after > beliefs_of("Name a colour.", "Blue.", "commit it").features["difficulty"]
    assert after >= beliefs_of(hard).features["difficulty"]


def test_an_easy_ask_after_a_hard_one_looks_easy():
    easy = beliefs_of("Prove step by step that pi is irrational.", "Done.", "Name three colours.")
    assert easy.features["steps"] == 0.0


def test_a_session_that_had_to_go_up_looks_harder():
    request = ChatRequest(id="r", messages=[{"role": "user", "content": "Name a colour."}])
    up = ChatRequest(id="r", messages=request.messages, escalation=0.5)
    assert estimate(up).mean["small"] < estimate(request).mean["small"]


@pytest.mark.parametrize(
    ("easy", "hard"),
    [
        ("색깔 하나를 말해 주세요.", "루트 2가 무리수임을 단계별로 증명해 주세요."),
        ("12 더하기 5는?", "312 곱하기 845는?"),
        ("고양이에 대한 시를 써 줘", "고양이에 대한 시를 반드시 네 줄로, 조사 없이, 정확히 써 줘"),
    ],
)
def test_korean_wording_counts_too(easy, hard):
    assert difficulty(easy) < difficulty(hard)


def test_what_is_looked_at_can_be_configured():
    estimator = HeuristicEstimator(tiers=TIERS, text={"turns": 0, "context_tokens": 0})
    messages = [{"role": "user", "content": "Prove it."}, {"role": "user", "content": "go on"}]
    (beliefs,) = asyncio.run(estimator.estimate([ChatRequest(id="r", messages=messages)]))
    assert beliefs.features["steps"] == 0.0


def test_an_option_of_the_extraction_that_is_not_known_is_refused():
    with pytest.raises(ConfigError) as caught:
        HeuristicEstimator(tiers=TIERS, text={"window": 3})
    assert caught.value.param == "text.window"
