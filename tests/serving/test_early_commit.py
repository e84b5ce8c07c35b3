"""Early commit as it is configured, streamed, explained and audited."""

from dataclasses import replace

import pytest
from rich.console import Console

from cascade.audit import record
from cascade.backends.scripted import Script
from cascade.commit import CommitRule
from cascade.errors import ConfigError
from cascade.policies.ladder import Rung
from serving.explain import explanation
from serving.store.present import request_view
from tests.chats import lines
from tests.engines import Bench, FixedJudge, ladder, tier
from tests.services import running, snapshot
from tests.serving.test_config import GOOD, wired

STEP = "{tier: small, judge: sound, accept_at: 0.7"
RULE = CommitRule(after_tokens=2, at=0.9)
ARM = ladder(Rung(tier="small", judge="told", accept_at=0.8, commit=RULE), Rung(tier="large"))


class GrowingJudge(FixedJudge):
    growing = True


def committing(tmp_path, rule, text=GOOD):
    return wired(tmp_path, text.replace(STEP, f"{STEP}, commit: {{{rule}}}"))


def test_a_commit_rule_comes_from_the_configuration(tmp_path):
    made = committing(tmp_path, "after_tokens: 24, at: 0.9, judge: sure")
    step = made.arm("cascade", "").policy.steps[0]
    assert step.commit == CommitRule(after_tokens=24, at=0.9, judge="sure")


def test_a_calibrated_judge_and_a_panel_of_growing_members_may_look(tmp_path):
    (tmp_path / "map.json").write_text(
        '{"kind": "monotone_map", "x": [0, 1], "y": [0, 1], "fitted_for": {}}'
    )
    text = GOOD.replace("statistic: min}", "statistic: min, calibration: map.json}")
    text = text.replace("  sound: {", "  start: {type: panel, members: [sure]}\n  sound: {")
    for judge in ("sure", "start"):
        assert committing(tmp_path, f"after_tokens: 24, at: 0.9, judge: {judge}", text)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("after_tokens: 24, at: 0.9", r"judge sound cannot .* growing \(its whole cannot\)"),
        ("after_tokens: 24, at: 0.9, judge: whole", "judge whole cannot look"),
        ("after_tokens: 24, at: 0.9, judge: gone", "no judge 'gone'"),
        ("after_tokens: 0, at: 0.9, judge: sure", "from 1"),
        ("after_tokens: 24, at: 2, judge: sure", "none ever is"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_its_line(tmp_path, rule, fault):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:22: .*commit.*{fault}"):
        committing(tmp_path, rule)


def test_log_probabilities_that_the_look_needs_must_be_there(tmp_path):
    text = GOOD.replace("    capabilities: [logprobs]\n", "").replace(
        "judge: sound", "judge: whole"
    )
    rule = "commit: {after_tokens: 24, at: 0.9, judge: sure}"
    with pytest.raises(ConfigError, match="judge sure needs log probabilities"):
        wired(tmp_path, text.replace("accept_at: 0.7", f"accept_at: 0.7, {rule}"))


def committed_early(**options):
    made = snapshot(**options)
    arm = replace(made.arms["cascade"], policy=ARM.policy)
    return running(replace(made, arms={**made.arms, "cascade": arm}))


async def test_a_stream_begins_with_the_commit_and_says_who_answers():
    judge = GrowingJudge(0.95, 0.1, logprobs=True)
    async with committed_early(small=["one two three"], judge=judge) as service:
        headers, events = await lines(service)
    assert headers["x-cascade-tier"] == "small"
    assert "".join(events).count('"content":') == 3
    assert events[-2:] == ["data: [DONE]", ""]
    assert not any("logprobs" in event for event in events)
    [result] = service.log.results
    assert result.attempts[0].commit.tokens == 2


async def test_a_break_after_the_commit_is_an_error_event():
    cut = [Script(text="one two three four", cut_after=3)]
    judge = GrowingJudge(0.95, logprobs=True)
    async with committed_early(small=cut, judge=judge) as service:
        _, events = await lines(service)
    assert any("stream_broken" in event for event in events)
    assert "data: [DONE]" not in events


async def test_an_explanation_and_the_audit_log_tell_when_and_why_it_was_released():
    bench = Bench(
        tier("small", "one two three"), tier("large"), judge=GrowingJudge(0.95, 0.1), arm=ARM
    )
    result = await bench.live()
    told = explanation(result)
    assert "released while it grew: told gives its first 2 tokens 0.950" in told["reason"]
    look = told["attempts"][1]
    assert (look["kind"], look["outcome"]) == ("judge", "accepted")
    assert (look["score"], look["threshold"]) == (0.95, 0.9)
    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(request_view(record(result)))
    shown = " ".join(capture.get().split())
    assert "looks at the first 2 tokens of attempt 0, to release it from 0.900 on" in shown
    assert "which is below 0.800" in shown
    row = record(result).attempts[1]
    assert (row.kind, row.judge, row.outcome, row.score) == ("judge", "told", "accepted", 0.95)
