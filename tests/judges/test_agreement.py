from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from cascade.errors import ConfigError, EstimatorError, JudgeError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Choice, Completion, Cost, Verdict
from judges.agreement import AgreementJudge
from judges.finals import final_answer, normalised
from tests.engines import FixedJudge, tier

REQUEST = ChatRequest(
    id="r",
    messages=[{"role": "user", "content": "6 * 7?"}],
    params={"max_tokens": 20, "temperature": 0, "seed": 3, "n": 2, "logprobs": True},
    session="s",
    idempotency_key="once",
)


def answer(text="It is 42."):
    return Completion(choices=(Choice(text=text, finish_reason="stop"),), tier="small")


def agreeing(*samples, **options):
    small = tier("small", *samples)
    judge = AgreementJudge(**options, tiers={"small": small})
    return judge, small.backend.requests


async def test_the_score_is_the_share_of_samples_with_the_same_final_answer():
    judge, asked = agreeing("42", "So it is 42.", "41", "forty-two", k=4)
    verdict = await judge.judge(REQUEST, answer())
    assert verdict.score == 0.5
    assert verdict.features == {"agreement": 0.5, "samples": 4.0}
    assert verdict.cost.total == 4 * Decimal("0.000014")
    for request in asked:
        assert request.params == {"max_tokens": 20, "temperature": 0.8}
        assert (request.session, request.idempotency_key) == ("s", "")


async def test_as_text_the_same_words_are_wanted():
    judge, _ = agreeing("it is 42", "42", k=2, compare="text")
    assert (await judge.judge(REQUEST, answer())).score == 0.5


@pytest.mark.parametrize("score", [0.1, 0.95, None])
async def test_outside_the_band_no_sample_is_drawn_and_the_verdict_stands(score):
    inner = FixedJudge(score, logprobs=True)
    judge, asked = agreeing("42", of=inner, band=[0.3, 0.8])
    verdict = await judge.judge(REQUEST, answer())
    assert (verdict.score, verdict.reason, verdict.judge) == (score, "told so", "agreement")
    assert asked == []
    assert judge.needs == {"logprobs": True}


async def test_inside_the_band_both_costs_are_on_the_verdict():
    class Paid(FixedJudge):
        async def judge(self, request, completion):
            cost = Cost(output=Decimal(1))
            return Verdict(judge="paid", score=0.3, features={"mean": -1.0}, cost=cost)

    judge, _ = agreeing("42", k=1, of=Paid(), band=[0.3, 0.8])
    verdict = await judge.judge(REQUEST, answer())
    assert verdict.score == 1.0
    assert verdict.features == {"mean": -1.0, "doubted": 0.3, "agreement": 1.0, "samples": 1.0}
    assert verdict.cost.total == 1 + Decimal("0.000014")


async def test_a_final_verdict_spares_the_samples():
    class Final(FixedJudge):
        async def judge(self, request, completion):
            return Verdict(judge="final", score=0.5, final=True)

    judge, asked = agreeing("42", of=Final())
    assert (await judge.judge(REQUEST, answer())).final
    assert asked == []


async def test_one_call_gives_all_samples_where_the_server_can():
    judge, asked = agreeing("42", k=3, one_call=True)
    verdict = await judge.judge(REQUEST, answer())
    assert verdict.features["samples"] == 3
    assert [request.params["n"] for request in asked] == [3]


async def test_what_a_server_leaves_out_of_one_call_is_asked_for_again():
    class Stubborn(Backend):
        """Gives one choice, whatever n says."""

        def __init__(self, inner):
            self.inner, self.requests = inner, []

        async def stream(self, request):
            self.requests.append(request)
            params = {k: v for k, v in request.params.items() if k != "n"}
            again = ChatRequest(id="x", messages=request.messages, params=params)
            async for chunk in self.inner.stream(again):
                yield chunk

    plain = tier("small", "42")
    stubborn = Stubborn(plain.backend)
    tiers = {"small": replace(plain, backend=stubborn)}
    judge = AgreementJudge(k=3, one_call=True, tiers=tiers)
    assert (await judge.judge(REQUEST, answer())).features["samples"] == 3
    assert [request.params.get("n") for request in stubborn.requests] == [3, None, None]


async def test_a_failed_sample_is_an_error_with_the_cost_of_the_others():
    judge, _ = agreeing("42", {"error": "BackendRefusedError"}, k=2)
    with pytest.raises(JudgeError, match="as scripted") as caught:
        await judge.judge(REQUEST, answer())
    assert caught.value.cost.total == Decimal("0.000014")


@pytest.mark.parametrize(
    "options",
    [{"k": 0}, {"k": 99}, {"temperature": 0}, {"compare": "vibes"}, {"band": [0.8, 0.3]}],
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(ConfigError):
        agreeing("x", **options)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [2]}', '```json\n{"b":[2], "a":1}\n```'),
        ("20 + 22 = 42", "42"),
        ("1,200", "It comes to 1200.0"),
        ("B", "The answer is (B)."),
        ("B) Paris", "b."),
        ("Yes.", "yes"),
    ],
)
def test_equal_answers_come_to_the_same(one, other):
    assert final_answer(one) == final_answer(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1}', '{"a": "1"}'),
        ("42", "-42"),
        ("A", "B"),
        ("A dog", "A"),
        ("yes", "no"),
        ("4", "D"),
    ],
)
def test_different_answers_do_not(one, other):
    assert final_answer(one) != final_answer(other)


def test_normalised_text_keeps_the_words_only():
    assert normalised('  "Hello,\n World!" - ') == "hello world"


class Tones:
    """Three meanings; fails on a fourth."""

    model = "tones"
    dimensions = 2

    async def embed(self, texts):
        known = {"yes": [1, 0], "sure": [0.8, 0.6], "no": [0, 1]}
        if not known.keys() >= set(texts):
            raise EstimatorError("no such tone")
        return np.array([known[text] for text in texts], dtype=np.float32)


async def test_by_meaning_samples_agree_that_lie_near():
    judge, _ = agreeing("yes", "sure", "no", k=3, compare="meaning", alike=0.7, embedder=Tones())
    verdict = await judge.judge(REQUEST, answer("yes"))
    assert verdict.score == pytest.approx(2 / 3)
    assert verdict.features["similarity"] == pytest.approx(0.6)
    assert verdict.features["similarity_min"] == pytest.approx(0.0)


async def test_an_embedder_that_fails_is_a_judge_that_fails_and_has_spent():
    judge, _ = agreeing("hm", k=1, compare="meaning", embedder=Tones())
    with pytest.raises(JudgeError, match="no such tone") as caught:
        await judge.judge(REQUEST, answer("yes"))
    assert caught.value.cost.total == Decimal("0.000014")


@pytest.mark.parametrize("options", [{"compare": "meaning"}, {"embedder": Tones()}])
def test_meaning_and_an_embedder_come_together(options):
    with pytest.raises(ConfigError, match="come together"):
        agreeing(**options)
