import json
import math
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade import posterior
from cascade.calibration import MonotoneMap
from cascade.errors import ConfigError, JudgeError
from cascade.types import Beliefs, ChatRequest, Choice, Completion, Cost, Verdict
from judges.calibrated import CalibratedJudge
from judges.panel import PanelJudge

REQUEST = ChatRequest(id="r", messages=[])
ANSWER = Completion(choices=(Choice(text="x", finish_reason="stop"),))


class Member:
    def __init__(self, name, score, final=False, cost="0", **needs):
        self.name, self.needs, self.asked = name, needs, 0
        self._verdict = (
            score
            if isinstance(score, Exception)
            else Verdict(
                judge=name,
                score=score,
                final=final,
                features={"f": 1.0},
                reason="r",
                cost=None if cost is None else Cost(output=Decimal(cost)),
            )
        )

    async def judge(self, request, completion):
        self.asked += 1
        if isinstance(self._verdict, Exception):
            raise self._verdict
        return self._verdict


async def panel(*members):
    return await PanelJudge(name="p", members=members).judge(REQUEST, ANSWER)


async def test_the_worst_verdict_decides_and_all_features_are_kept():
    verdict = await panel(Member("a", 0.9, cost="1"), Member("b", 0.4, cost="2"))
    assert verdict.score == 0.4
    assert verdict.features == {"a.f": 1.0, "b.f": 1.0, "a.score": 0.9, "b.score": 0.4}
    assert verdict.reason == "b: r"
    assert verdict.cost.total == 3


async def test_a_final_verdict_spares_the_rest():
    rest = Member("b", 0.9)
    verdict = await panel(Member("a", 0.0, final=True), rest)
    assert (verdict.score, verdict.final, rest.asked) == (0.0, True, 0)


async def test_one_that_cannot_tell_leaves_the_panel_unable_to_tell():
    assert (await panel(Member("a", 1.0), Member("b", None), Member("c", 1.0))).score is None
    settled = await panel(Member("a", None), Member("b", 0.0, final=True))
    assert settled.score == 0.0


async def test_a_failing_member_fails_the_panel():
    with pytest.raises(JudgeError):
        await panel(Member("a", 1.0), Member("b", JudgeError("down")))


async def test_an_unknown_cost_is_not_hidden():
    assert (await panel(Member("a", 1.0), Member("b", 1.0, cost=None))).cost is None


def test_needs_are_the_largest_of_the_members():
    judge = PanelJudge(
        name="p",
        members=[Member("a", 1.0, logprobs=True, top_logprobs=2), Member("b", 1.0, top_logprobs=5)],
    )
    assert judge.needs == {"logprobs": True, "top_logprobs": 5}


def test_an_empty_panel_is_refused():
    with pytest.raises(ConfigError, match="at least one"):
        PanelJudge(name="p", members=[])


async def test_calibration_maps_the_score_and_leaves_facts_alone():
    fitted = MonotoneMap([0.0, 1.0], [0.2, 0.8])
    mapped = await CalibratedJudge(Member("a", 0.5), fitted).judge(REQUEST, ANSWER)
    assert mapped.score == pytest.approx(0.5)
    assert mapped.features["raw"] == 0.5
    fact = await CalibratedJudge(Member("a", 0.0, final=True), fitted).judge(REQUEST, ANSWER)
    assert fact.score == 0.0
    unsure = await CalibratedJudge(Member("a", None), fitted).judge(REQUEST, ANSWER)
    assert unsure.score is None


@pytest.fixture
def artifact(tmp_path):
    """Log-odds 4 (a.f - 0.5), the other tier's always 0."""
    flat = {"kind": "platt", "slope": 1.0, "offset": 0.0}
    manifest = {"judged": "small", "models": {}, "members": {}, "data": "", "rows": {}}
    content = {
        "kind": "panel_model",
        "manifest": manifest | {"fitted_at": ""},
        "features": [{"name": "a.f", "mean": 0.5, "scale": 0.25}],
        "heads": {
            "small": {"weights": [1.0], "calibration": flat},
            "large": {"weights": [0.0], "calibration": flat},
        },
    }
    (tmp_path / "sound.json").write_text(json.dumps(content))
    return {"name": "p", "artifact": "sound.json", "base": tmp_path}


def by(tier):
    return replace(ANSWER, tier=tier)


async def test_a_fitted_panel_weighs_features_and_speaks_of_the_higher_tier(artifact):
    fitted = PanelJudge(members=[Member("a", 0.9), Member("b", None)], **artifact)
    verdict = await fitted.judge(REQUEST, by("small"))
    assert verdict.score == pytest.approx(1 / (1 + math.exp(-2)))
    assert verdict.others == {"large": 0.5}
    assert "acceptable with 0.88; large 0.50" in verdict.reason


async def test_what_a_fitted_panel_says_of_others_is_believed(artifact):
    fitted = PanelJudge(members=[Member("a", 0.9)], **artifact)
    verdict = await fitted.judge(REQUEST, by("small"))
    before = Beliefs(mean={"small": 0.1, "large": 0.9, "huge": 0.99})
    after = posterior.update(before, "small", verdict)
    assert after.mean == {"small": verdict.score, "large": 0.5, "huge": 0.99}


async def test_a_fitted_panel_cannot_tell_without_its_features_or_of_another_tier(artifact):
    fitted = PanelJudge(members=[Member("b", 0.9)], **artifact)
    verdict = await fitted.judge(REQUEST, by("small"))
    assert (verdict.score, verdict.others) == (None, {})
    assert verdict.reason == "a.f is missing (no member gave it)"
    fitted = PanelJudge(members=[Member("a", 0.9)], **artifact)
    assert (await fitted.judge(REQUEST, by("large"))).score is None


async def test_a_hard_fault_ends_a_fitted_panel_as_well(artifact):
    rest = Member("a", 0.9)
    fitted = PanelJudge(members=[Member("f", 0.0, final=True), rest], **artifact)
    verdict = await fitted.judge(REQUEST, by("small"))
    assert (verdict.score, verdict.final, rest.asked) == (0.0, True, 0)
