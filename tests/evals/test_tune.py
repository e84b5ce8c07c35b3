import json

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.calibration import load_map
from cascade.errors import BackendError
from cascade.pricing import PriceCard
from cascade.types import Usage
from evals.comparison import LARGE_RATES, ComparisonError
from evals.tune import (
    FitRow,
    Side,
    artifact,
    choose,
    curve,
    digest,
    fit,
    measure,
    ranking,
)
from judges.logprob import LogprobJudge
from tests.evals.outcomes import prompt


def row(score, small, large, **fields):
    return FitRow(
        kind="sums",
        score=score,
        small_right=small,
        large_right=large,
        small_cost=fields.pop("small_cost", 1.0),
        large_cost=10.0,
        **fields,
    )


def knowing(count=100):
    """Scores that tell: the upper half is right, the lower half is what only the large one can."""
    return [row(i / count, i >= count / 2, large=True) for i in range(count)]


def test_a_score_that_tells_gets_a_threshold_between_right_and_wrong():
    rows = knowing()
    fitted = fit(rows)
    chosen = choose(curve(rows, fitted))
    assert chosen.escalated == pytest.approx(0.5, abs=0.06)
    assert chosen.accuracy > 0.97
    assert chosen.lead > 0.2


def test_a_candidate_counts_the_small_call_always_and_the_large_one_where_it_goes_up():
    rows = [row(0.1, small=False, large=True), row(0.9, small=True, large=False)] * 20
    candidate = next(c for c in curve(rows, fit(rows)) if c.accept_at == 0.5)
    assert candidate.escalated == 0.5
    assert candidate.cost == pytest.approx(1.0 + 10.0 / 2)
    assert candidate.accuracy == 1.0
    assert candidate.mix_accuracy == pytest.approx(0.5)


def test_doubt_that_falls_on_what_the_large_model_fails_too_gives_no_lead():
    rows = [row(i / 100, i >= 50, large=i >= 50 or i % 2 == 0) for i in range(100)]
    rows = [
        row(each.score, each.small_right, large=each.small_right or i >= 40)
        for i, each in enumerate(rows)
    ]
    hopeless = [c for c in curve(rows, fit(rows)) if 0 < c.escalated <= 0.35]
    assert all(candidate.lead < 0 for candidate in hopeless)


def test_an_answer_that_the_judge_cannot_tell_of_goes_up():
    rows = [*knowing(), row(None, small=True, large=True)]
    assert curve(rows, fit(rows))[0].escalated == pytest.approx(1 / 101)


def test_a_judge_that_can_tell_of_nothing_cannot_be_fitted():
    with pytest.raises(ComparisonError, match="does the small model report log probabilities"):
        fit([row(None, small=True, large=True)])


def test_of_equally_good_thresholds_the_lowest_is_taken():
    rows = [row(0.5, small=True, large=True)] * 10
    candidates = curve(rows, fit(rows))
    assert choose(candidates) is candidates[0]


def side(*answers):
    return Side(backend=ScriptedBackend(answers=answers), card=PriceCard(rates=LARGE_RATES))


async def test_both_models_are_asked_and_the_small_answer_is_judged():
    seen = []
    small = side(Script(text="4", logprob=-0.5), Script(text="5", logprob=-2.0))
    large = side("4")
    rows = await measure(
        [prompt("p-1"), prompt("p-2")], (small, large), LogprobJudge(), lambda: seen.append(1)
    )
    assert [each.small_right for each in rows] == [True, False]
    assert [each.large_right for each in rows] == [True, True]
    assert [round(each.score, 3) for each in rows] == [0.607, 0.135]
    assert rows[1].features["mean"] == -2.0
    assert rows[0].small_cost == pytest.approx((10 * 0.2 + 2 * 0.4) / 1e6)
    assert len(seen) == 2


async def test_only_the_judged_model_is_asked_for_what_the_judge_needs():
    small, large = side("4"), side("4")
    await measure([prompt()], (small, large), LogprobJudge(), lambda: None)
    assert small.backend.requests[0].params["logprobs"] is True
    assert small.backend.requests[0].params["temperature"] == 0
    assert "logprobs" not in large.backend.requests[0].params


async def test_a_model_that_fails_ends_the_measurement():
    with pytest.raises(BackendError):
        await measure(
            [prompt()],
            (side("4"), side(Script(error="BackendServerError"))),
            LogprobJudge(),
            lambda: None,
        )


async def test_a_model_that_reports_no_usage_is_not_priced_as_free():
    with pytest.raises(Exception, match="cannot be priced"):
        await measure(
            [prompt()], (side(Script(usage=Usage())), side("4")), LogprobJudge(), lambda: None
        )


def test_features_are_ranked_by_how_well_they_tell_right_from_wrong():
    rows = [
        row(0.5, small=True, large=True, features={"mean": -0.1, "tokens": 3.0}),
        row(0.5, small=False, large=True, features={"mean": -0.9, "tokens": 9.0}),
    ]
    assert ranking(rows, "mean") == 1.0
    assert ranking(rows, "tokens") == 1.0
    assert ranking(rows, "margin") is None


def test_the_artifact_is_the_map_that_the_service_loads_and_says_where_it_is_from(tmp_path):
    rows = knowing()
    fitted = fit(rows)
    chosen = choose(curve(rows, fitted))
    judge = {"type": "logprob", "statistic": "min"}
    text = artifact(rows, fitted, chosen, [prompt()], judge=judge, about={"model": "small"})
    path = tmp_path / "map.json"
    path.write_text(text)
    assert load_map(path)(0.5) == pytest.approx(fitted(0.5), abs=1e-5)
    meta = json.loads(text)["meta"]
    assert load_map(path).fitted_for == judge
    assert meta["model"] == "small"
    assert meta["rows"] == 100
    assert meta["base_rate"] == 0.5
    assert meta["accept_at"] == chosen.accept_at
    assert meta["prompts_sha256"] == digest([prompt()])
    assert meta["fitted_at"].endswith("+00:00")


def test_the_digest_changes_with_what_is_asked_and_what_is_right():
    same = digest([prompt()])
    assert same == digest([prompt()])
    assert same != digest([prompt("p-2")])
    assert same != digest([prompt(reference=5)])
