"""Judges as a configuration builds them."""

import pytest

from cascade.errors import ConfigError
from cascade.types import ChatRequest, Choice, Completion
from serving.config import ConfigFile
from serving.wiring import Wiring

HEAD = """
tiers:
  small:
    backend: scripted
    answers: ["42"]
    price: {input: 1, cache_read: 0.1, output: 2}
  large:
    backend: scripted
    answers: [{text: "yes", logprob: -0.1}]
    price: {input: 10, cache_read: 1, output: 20}
judges:
"""
REQUEST = ChatRequest(id="r", messages=[{"role": "user", "content": "6 * 7?"}])
ANSWER = Completion(choices=(Choice(text="42", finish_reason="stop"),), tier="small")


def wired(tmp_path, judges):
    path = tmp_path / "cascade.yaml"
    path.write_text(HEAD + judges)
    file = ConfigFile(path)
    try:
        return Wiring(file.config, tmp_path).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def built(tmp_path, judges):
    return wired(tmp_path, judges).judges


async def test_a_judge_model_is_a_tier_and_costs_what_its_card_says(tmp_path):
    judges = built(tmp_path, "  graded: {type: llm, tier: large, rubric: correct}\n")
    verdict = await judges["graded"].judge(REQUEST, ANSWER)
    assert verdict.score == pytest.approx(1.0, abs=0.01)
    assert float(verdict.cost.total) == pytest.approx((10 * 10 + 2 * 20) / 1e6)


async def test_a_rubric_is_looked_for_beside_the_configuration(tmp_path):
    (tmp_path / "tone.md").write_text("labels: no yes\nask: Is it polite?\n\nYou judge the tone.\n")
    judges = built(tmp_path, "  tone: {type: llm, tier: large, rubric: tone.md}\n")
    assert (await judges["tone"].judge(REQUEST, ANSWER)).score is not None


def test_another_wording_of_a_rubric_is_another_version_of_the_configuration(tmp_path):
    versions = set()
    for ask in ("Is it polite?", "Is it kind?"):
        (tmp_path / "tone.md").write_text(f"labels: no yes\nask: {ask}\n\nYou judge the tone.\n")
        judge = "  tone: {type: llm, tier: large, rubric: tone.md}\n"
        versions.add(wired(tmp_path, judge).version)
    assert len(versions) == 2


async def test_samples_are_asked_for_where_another_judge_doubts(tmp_path):
    judges = built(
        tmp_path,
        "  doubting: {type: expected, one_of: ['42']}\n"
        "  agreed: {type: agreement, of: doubting, band: [0.5, 1.0], k: 3}\n",
    )
    verdict = await judges["agreed"].judge(REQUEST, ANSWER)
    assert (verdict.score, verdict.features["samples"]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("judges", "where", "fault"),
    [
        ("  j: {type: llm, tier: huge}", "judges.j.tier", "no tier 'huge'"),
        ("  j: {type: llm, tier: large, rubric: x.md}", "judges.j.rubric", "cannot be read"),
        ("  j: {type: llm, tier: large, mode: vibes}", "judges.j.mode", "pointwise"),
        ("  j: {type: agreement, of: k}", "judges.j.of", "no judge 'k'"),
        ("  j: {type: agreement, of: j}", "judges.j.of", "a member of itself"),
        ("  j: {type: format, of: k}\n  k: {type: format}", "judges.j.of", "does not take"),
        ("  j: {type: format, members: [k]}\n  k: {type: format}", "judges.j.members", "not take"),
        ("  j: {type: code}", "judges.j.allow_execution", "allow_execution: true"),
        ("  j: {type: expected, pattern: '('}", "judges.j.pattern", "cannot be used"),
        ("  j: {type: logprob, top_logprobs: 21}", "judges.j.top_logprobs", "0..20"),
    ],
)
def test_a_judge_that_cannot_work_is_refused_with_its_line(tmp_path, judges, where, fault):
    with pytest.raises(ConfigError, match=fault) as caught:
        built(tmp_path, judges + "\n")
    assert caught.value.param == where
    assert ":12: " in str(caught.value)


async def test_rules_are_written_in_the_configuration(tmp_path):
    rule = "{when: 'answer.length < 5 && request.ask.contains(\"*\")', reason: too short}"
    judges = built(tmp_path, f"  j: {{type: rules, reject: [{rule}]}}\n")
    verdict = await judges["j"].judge(REQUEST, ANSWER)
    assert (verdict.score, verdict.reason) == (0.0, "too short")
    with pytest.raises(ConfigError) as caught:
        built(tmp_path, "  j: {type: rules, reject: [{when: 'answr == 1', reason: r}]}\n")
    assert caught.value.param == "judges.j.reject.0.when"
