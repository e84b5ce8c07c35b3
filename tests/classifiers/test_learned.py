import asyncio
import json
import math
from dataclasses import replace

import pytest

from cascade.errors import ConfigError, EstimatorError
from cascade.types import FREE, ChatRequest
from classifiers.learned import OUT_OF_DOMAIN, LearnedEstimator
from classifiers.text import Extraction
from tests.learning import MODELS, WordVectors, artifact, ask, prompts

EASY = "greet the cat of the boat"
HARD = "prove the cat of the boat"
STRANGE = "ξ zzz qqq blorp wug fnord 77 %% [[ " * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("artifacts")
    artifact(made)
    return made


def learned(folder, **options):
    given = {"artifact": "model.json", "base": folder, "embedder": WordVectors()}
    return LearnedEstimator(**{**given, **options})


async def beliefs(estimator, text, **fields):
    (found,) = await estimator.estimate([ask(text, **fields)])
    return found


async def test_what_the_small_tier_fails_at_is_told_from_what_it_can_do(folder):
    estimator = learned(folder)
    easy, hard = await beliefs(estimator, EASY), await beliefs(estimator, HARD)
    assert easy.mean["small"] > 0.7
    assert hard.mean["small"] < 0.4
    assert hard.mean["large"] > 0.7


async def test_estimates_are_about_right_on_requests_it_has_not_seen(folder):
    texts, labels = prompts(400, seed=9)
    found = await learned(folder).estimate([ask(text) for text in texts])
    for at, tier in enumerate(("small", "large")):
        told = sum(each.mean[tier] for each in found) / len(found)
        assert abs(told - labels[:, at].mean()) < 0.06


async def test_a_request_unlike_the_training_data_gets_the_prior_and_a_flag(folder):
    estimator = learned(folder)
    strange = await beliefs(estimator, STRANGE)
    assert strange.flags == {OUT_OF_DOMAIN}
    assert strange.mean == estimator.manifest.prior
    assert (await beliefs(estimator, EASY)).flags == frozenset()


async def test_features_and_embedding_are_there_for_the_audit_log(folder):
    found = await beliefs(learned(folder), EASY)
    assert found.features["log_characters"] == pytest.approx(math.log1p(len(EASY)))
    assert found.embedding.model == "words-1"
    assert len(found.embedding.vector) == 16


async def test_a_session_that_went_up_lowers_every_tier_but_the_last(folder):
    calm = await beliefs(learned(folder), EASY)
    tense = await beliefs(learned(folder), EASY, escalation=1.0)
    off = await beliefs(learned(folder, history_weight=0.0), EASY, escalation=1.0)
    odds = calm.mean["small"] / (1 - calm.mean["small"]) / math.e
    assert tense.mean["small"] == pytest.approx(odds / (1 + odds))
    assert tense.mean["large"] == calm.mean["large"]
    assert off.mean == calm.mean


async def test_a_failing_embedder_is_no_estimate(folder):
    class Broken(WordVectors):
        async def embed(self, texts):
            raise EstimatorError("out of memory")

    with pytest.raises(EstimatorError, match="out of memory"):
        await learned(folder, embedder=Broken()).estimate([ask(EASY)])


class Slow(WordVectors):
    """Takes its time, or so long as it is told to."""

    def __init__(self, seconds=30.0):
        super().__init__()
        self._seconds = seconds

    async def embed(self, texts):
        await asyncio.sleep(self._seconds)
        return await super().embed(texts)


async def test_an_embedder_that_takes_too_long_is_no_estimate(folder):
    slow = learned(folder, embedder=Slow(), seconds=0.02)
    with pytest.raises(EstimatorError, match=r"no embedding within 0\.02 s") as fault:
        await asyncio.wait_for(slow.estimate([ask(EASY)]), 10)
    assert fault.value.cost == FREE
    patient = learned(folder, embedder=Slow(0.02), seconds=10.0)
    assert await patient.estimate([ask(EASY)]) == await learned(folder).estimate([ask(EASY)])


async def test_time_that_somebody_else_limits_is_not_the_embedders_fault(folder):
    slow = learned(folder, embedder=Slow(), seconds=10.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await slow.estimate([ask(EASY)])


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
def test_no_time_at_all_is_refused(folder, seconds):
    with pytest.raises(ConfigError, match="above 0") as fault:
        learned(folder, seconds=seconds)
    assert fault.value.param == "seconds"


LONG_AGO = "prove the boat of the tree"
TALK = [
    {"role": "user", "content": LONG_AGO},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "yes"},
]


async def test_a_request_is_looked_at_as_the_artifact_says(folder, tmp_path):
    artifact(tmp_path, extraction=Extraction(turns=0, context_tokens=0, markers=["note"]))
    noted = ask("<note>prove it</note>yes").messages[0]
    usual, narrow = WordVectors(), WordVectors()
    await learned(folder, embedder=usual).estimate([ChatRequest(id="r", messages=TALK)])
    talk = ChatRequest(id="r", messages=[*TALK[:-1], noted])
    (found,) = await learned(tmp_path, embedder=narrow).estimate([talk])
    assert LONG_AGO in usual.seen[0]
    assert narrow.seen == ["yes"]
    assert found.features["log_characters"] == pytest.approx(math.log1p(len("yes")))


async def test_an_artifact_that_does_not_say_so_is_asked_about_the_usual_parts(folder, tmp_path):
    content = json.loads((folder / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**content, "extraction": {}}))
    arrays = (folder / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(arrays)
    talk = ChatRequest(id="r", messages=TALK)
    assert await learned(tmp_path).estimate([talk]) == await learned(folder).estimate([talk])


def test_an_artifact_that_says_what_nobody_can_look_at_is_refused(folder, tmp_path):
    content = json.loads((folder / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**content, "extraction": {"turn": 4}}))
    arrays = (folder / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(arrays)
    with pytest.raises(ConfigError, match="unknown key") as fault:
        learned(tmp_path)
    assert fault.value.param == "artifact.extraction.turn"


@pytest.mark.parametrize(
    ("embedder", "complaint"),
    [
        (None, "name the embedder"),
        (WordVectors(model="words-2"), "words-1 with 16 dimensions.*words-2"),
        (WordVectors(dimensions=8), "with 8: name that embedder, or train again"),
    ],
)
def test_another_embedding_model_is_refused_with_both_names(folder, embedder, complaint):
    with pytest.raises(ConfigError, match=complaint) as fault:
        learned(folder, embedder=embedder)
    assert fault.value.param == "embedder"


def test_a_tier_that_is_not_there_is_refused(folder):
    with pytest.raises(ConfigError, match="a tier 'large'; there are: small"):
        learned(folder, models={"small": "tiny-1"})


def test_tiers_in_another_order_are_refused(folder):
    turned = {tier: MODELS[tier] for tier in reversed(MODELS)}
    with pytest.raises(ConfigError, match="has 'large' before 'small'") as fault:
        learned(folder, models=turned)
    assert fault.value.param == "artifact"


def test_a_tier_that_nothing_was_learned_of_is_a_warning_or_refused_when_strict(folder):
    models = {"tiny": "nano-1", **MODELS}
    assert learned(folder, models=models).warnings == [
        "it was not fitted for tier 'tiny' and says nothing of it"
    ]
    with pytest.raises(ConfigError, match="not fitted for tier 'tiny'") as fault:
        learned(folder, models=models, strict=True)
    assert fault.value.param == "artifact"


def test_another_model_behind_a_tier_is_a_warning_or_refused_when_strict(folder):
    models = {**MODELS, "large": "huge-2"}
    (warning,) = learned(folder, models=models).warnings
    assert "huge-1, and tier large serves huge-2" in warning
    with pytest.raises(ConfigError, match="huge-2") as fault:
        learned(folder, models=models, strict=True)
    assert fault.value.param == "artifact"
    assert learned(folder, models=MODELS).warnings == []


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_history_weight_that_is_none_is_refused(folder, weight):
    with pytest.raises(ConfigError, match="history_weight"):
        learned(folder, history_weight=weight)


def test_two_artifacts_have_different_digests(folder, tmp_path):
    from evals.training.fit import Recipe

    artifact(tmp_path, recipe=Recipe(components=5))
    assert learned(folder).digest != learned(tmp_path).digest


async def test_an_artifact_of_features_alone_asks_no_embedder(tmp_path):
    artifact(tmp_path, embedded=False)
    embedder = WordVectors()
    found = await beliefs(learned(tmp_path, embedder=embedder), EASY)
    assert embedder.seen == []
    assert found.embedding is None


async def test_it_says_the_same_again_of_what_the_audit_log_keeps(folder):
    estimator = learned(folder)
    for text, escalation in ((EASY, 0.0), (HARD, 0.5), (STRANGE, 0.0)):
        first = await beliefs(estimator, text, escalation=escalation)
        again = estimator.again(first.features, first.embedding, escalation)
        assert again.mean == pytest.approx(first.mean)
        assert again.flags == first.flags


async def test_it_says_nothing_of_what_is_not_enough(folder):
    estimator = learned(folder)
    found = await beliefs(estimator, EASY)
    other = replace(found.embedding, model="words-2")
    assert estimator.again({"difficulty": 0.3}, found.embedding, 0.0) is None
    assert estimator.again(found.features, None, 0.0) is None
    assert estimator.again(found.features, other, 0.0) is None
