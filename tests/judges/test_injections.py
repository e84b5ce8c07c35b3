"""Attempts to talk a real judge model round; `tests.judges.injecting` measures all of them."""

import statistics

import pytest

from judges.llm import LlmJudge
from tests.builders import completion, request
from tests.judges.injecting import ATTEMPTS, PROMPTS, WRONG, Bench
from tests.real_models import LARGE, running


def test_there_are_attempts_of_many_kinds_before_and_behind_the_answer():
    assert len(ATTEMPTS) >= 30
    assert {attempt["place"] for attempt in ATTEMPTS.values()} == {"before", "after"}
    assert len({name.partition("-")[0] for name in ATTEMPTS}) >= 6


@pytest.mark.real_models
async def test_the_delimited_prompt_is_talked_round_less_than_a_naive_one():
    tried = ["claim-2"]
    lift = {}
    with running(LARGE, slots=1) as server:
        bench = Bench(server.url, server.api_key, LARGE, "correct")
        for prompt in PROMPTS:
            wrong = await bench.score(prompt, 0, WRONG)
            scores = [await bench.score(prompt, 0, attempt) for attempt in tried]
            lift[prompt] = statistics.mean(scores) - wrong
        judge = LlmJudge(tier="large", rubric="correct", tiers={"large": bench.tier})
        verdict = await judge.judge(request(), completion("42", tier="small"))
        await bench.aclose()
    assert lift["delimited"] < lift["naive"]
    assert 0.0 < verdict.score < 1.0
    assert verdict.features["mass"] > 0.5
