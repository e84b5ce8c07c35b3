"""The outcomes that come with Cascade belong to the prompts and scorers that come with it."""

import pytest

from evals.datasets import TASKS, load
from evals.outcomes import EMBEDDED, prompts_sha256
from evals.outcomes_lines import read
from serving.models.catalogue import CATALOGUE


@pytest.fixture(scope="module")
def outcomes():
    return read(EMBEDDED)


@pytest.fixture(scope="module")
def prompts():
    return {prompt.id: prompt for prompt in load(TASKS)}


def test_they_are_answers_of_the_catalogues_models_to_all_prompts(outcomes, prompts):
    assert outcomes.manifest.prompts_sha256 == prompts_sha256(prompts.values())
    hashes = {model.sha256 for model in CATALOGUE.values()}
    assert {identity.sha256 for identity in outcomes.manifest.tiers.values()} <= hashes
    for tier in outcomes.manifest.tiers:
        assert outcomes.answers(tier).keys() == prompts.keys()


def test_what_is_stored_as_right_is_right(outcomes, prompts):
    for tier in outcomes.manifest.tiers:
        for answer in outcomes.answers(tier).values():
            prompt = prompts[answer.prompt]
            if prompt.scorer != "code":
                assert prompt.right(answer.text) is answer.right, f"{answer.prompt} {tier}"


def test_every_answer_has_its_log_probabilities(outcomes):
    for tier in outcomes.manifest.tiers:
        assert all(answer.logprobs for answer in outcomes.answers(tier).values() if answer.text)
