import math

import pytest

from cascade.errors import ConfigError, EstimatorError
from classifiers.learned import OUT_OF_DOMAIN, LearnedEstimator
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
