"""What every estimator in the registry must do."""

import copy

import pytest

from cascade.registry import load
from cascade.types import ChatRequest
from classifiers.registry import ESTIMATORS
from tests.engines import tier
from tests.learning import WordVectors, artifact

OPTIONS = {
    "heuristic": {"tiers": {"small": [0.9, 0.3], "large": [0.97, 0.6]}},
    "llm": {"tier": "small", "tiers": {"large": 0.9}, "served": {"small": tier("small", "yes")}},
}


def ask(content, **fields):
    return ChatRequest(id="r", messages=[{"role": "user", "content": content}], **fields)


REQUESTS = [
    ask("hi"),
    ask("What is 347 * 892?"),
    ask(None),
    ask([{"type": "image_url", "image_url": {"url": "data:,"}}]),
    ask([{"type": "text", "text": "look"}, {"type": "image_url"}]),
    ask("x" * 300_000),
    ask("\ud800"),
    ChatRequest(id="r", messages=[]),
    ask("run it", tools=[{"type": "function"}]),
]


@pytest.fixture(params=sorted(ESTIMATORS))
def estimator(request, tmp_path):
    options = OPTIONS.get(request.param) or learned(tmp_path)
    return load(ESTIMATORS, "estimator", request.param)(name="e", **options)


def learned(folder):
    pytest.importorskip("safetensors")
    return {"artifact": artifact(folder), "base": folder, "embedder": WordVectors()}


async def test_beliefs_are_probabilities_for_every_tier(estimator):
    for beliefs in await estimator.estimate(REQUESTS):
        assert beliefs.mean.keys() == {"small", "large"}
        assert all(0.0 <= value <= 1.0 for value in beliefs.mean.values())
        assert all(isinstance(value, float) for value in beliefs.features.values())


async def test_a_batch_equals_one_by_one_and_changes_nothing(estimator):
    before = copy.deepcopy(REQUESTS)
    one_by_one = [beliefs for r in REQUESTS for beliefs in await estimator.estimate([r])]
    assert await estimator.estimate(REQUESTS) == one_by_one
    assert before == REQUESTS


async def test_no_requests_are_no_beliefs(estimator):
    assert await estimator.estimate([]) == []
