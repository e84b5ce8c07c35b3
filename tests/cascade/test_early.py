"""An answer whose start is good enough goes out while it grows, and cannot be taken back."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.commit import CommitRule
from cascade.early import beginning
from cascade.engine import CascadeEngine
from cascade.errors import JudgeError
from cascade.policies.ladder import Rung
from cascade.protocols import Traces
from cascade.result import AttemptFinished, Delta, Finished
from cascade.types import Budget, Choice, Chunk, Completion, Kind, Outcome, Verdict
from tests.engines import Bench, FixedJudge, MemorySink, ladder, request, tier

EARLY = ladder(
    Rung(tier="small", judge="told", accept_at=0.8, commit=CommitRule(after_tokens=3, at=0.9)),
    Rung(tier="large"),
)
FIVE = "one two three four five"


class GrowingJudge(FixedJudge):
    growing = True


def bench(*scores, small=FIVE, arm=EARLY, judge=GrowingJudge, **needs):
    needs = needs or {"logprobs": True, "top_logprobs": 1}
    return Bench(tier("small", small), tier("large", "six"), judge=judge(*scores, **needs), arm=arm)


def text(events):
    return "".join(
        (choice.get("delta") or {}).get("content") or ""
        for event in events
        if isinstance(event, Delta)
        for choice in event.choices
    )


async def test_a_confident_start_is_released_and_the_rest_streams_live():
    trial = bench(0.95, 0.9)
    seen = []
    async for event in trial.engine.events(request(), EARLY):
        if isinstance(event, Delta):
            seen.append((text([event]), len(trial.engine.snapshot.judges["told"].seen)))
        if isinstance(event, Finished):
            result = event.result
    assert "".join(piece for piece, _ in seen) == FIVE
    assert {judged for _, judged in seen} == {1}, "all of it goes out before the whole is judged"
    assert result.completion.text == FIVE
    assert result.released_characters == len(FIVE)
    assert not trial.asked("large")


async def test_the_judge_sees_exactly_the_start_and_that_it_is_one():
    trial = bench(0.95, 0.9)
    await trial.live()
    start, whole = trial.engine.snapshot.judges["told"].seen
    assert (start.text, start.partial, start.finish_reason) == ("one two three", True, None)
    assert len(start.logprobs) == 3
    assert (start.tier, start.model) == ("small", "small-model")
    assert (whole.text, whole.partial) == (FIVE, False)


async def test_the_result_tells_when_and_why_it_was_released():
    trial = bench(0.95, 0.4)
    result = await trial.live()
    answer, look, whole = result.attempts
    assert (answer.commit.tokens, answer.commit.score, answer.commit.at) == (3, 0.95, 0.9)
    assert (look.kind, look.outcome, look.threshold) == (Kind.JUDGE, Outcome.ACCEPTED, 0.9)
    assert look.verdict.score == 0.95
    assert look.reason == (
        "looks at the first 3 tokens of attempt 0, to release it from 0.900 on: released"
    )
    assert (whole.kind, whole.verdict.score) == (Kind.JUDGE, 0.4)
    assert result.reason == (
        "small's answer was released while it grew: told gives its first 3 tokens 0.950, which "
        "reaches 0.900; told gives small's answer 0.400, which is below 0.800"
    )


async def test_what_was_released_stands_whatever_the_whole_turns_out_to_be():
    trial = bench(0.95, 0.0)
    events = await trial.events()
    result = events[-1].result
    assert text(events) == FIVE
    assert result.attempts[0].outcome is Outcome.ACCEPTED
    assert not result.degraded
    assert not trial.asked("large")


async def test_a_start_below_the_threshold_is_held_and_judged_when_it_is_whole():
    trial = bench(0.89, 0.7)
    events = await trial.events()
    assert text(events) == "six"
    answer, look, whole, _ = events[-1].result.attempts
    assert answer.commit is None
    assert (look.outcome, look.reason.rpartition(": ")[2]) == (Outcome.REJECTED, "held")
    assert (answer.outcome, whole.verdict.score) == (Outcome.REJECTED, 0.7)


async def test_there_is_one_look_only_however_long_the_answer_gets():
    trial = bench(0.5, 0.95, small=" ".join(["word"] * 40))
    result = await trial.live()
    assert len(trial.engine.snapshot.judges["told"].seen) == 2
    assert result.attempts[0].commit is None


async def test_an_answer_that_ends_before_the_look_is_judged_whole_once():
    trial = bench(0.95, small="one two")
    result = await trial.live()
    [seen] = trial.engine.snapshot.judges["told"].seen
    assert not seen.partial
    assert [attempt.kind for attempt in result.attempts] == [Kind.ANSWER, Kind.JUDGE]


@pytest.mark.parametrize("scores", [(None, 0.9), (JudgeError("no"), 0.9)], ids=["silent", "failed"])
async def test_a_judge_that_cannot_tell_or_fails_releases_nothing(scores):
    trial = bench(*scores)
    events = await trial.events()
    kinds = [type(event) for event in events]
    assert kinds.index(AttemptFinished) < kinds.index(Delta), "held until the whole was judged"
    answer, look, _ = events[-1].result.attempts
    assert answer.commit is None
    assert look.outcome in {Outcome.REJECTED, Outcome.JUDGE_ERROR}


async def test_nothing_is_looked_at_early_where_nothing_goes_out_early():
    trial = bench(0.95)
    result = await trial.run()
    assert [seen.partial for seen in trial.engine.snapshot.judges["told"].seen] == [False]
    assert result.attempts[0].commit is None


async def test_of_several_answers_every_one_has_to_pass_so_there_is_no_look():
    trial = bench(0.95)
    await trial.live(request(n=2))
    assert [seen.partial for seen in trial.engine.snapshot.judges["told"].seen] == [False, False]


@pytest.mark.parametrize(("quality", "released"), [(0.94, True), (0.96, False)])
async def test_a_client_that_wants_more_quality_raises_the_threshold(quality, released):
    trial = bench(0.95, 0.97)
    asked = replace(request(), budget=Budget(quality=quality, dollars=Decimal(1)))
    result = await trial.live(asked)
    assert (result.attempts[0].commit is not None) is released
    assert result.attempts[1].threshold == max(0.9, quality)


async def test_a_break_after_the_release_ends_the_stream_and_no_other_tier_takes_over():
    trial = bench(0.95, small=Script(text=FIVE, cut_after=4))
    events = await trial.events()
    result = events[-1].result
    assert text(events) == "one two three four"
    assert result.error.type == "StreamBrokenError"
    assert result.attempts[0].commit.tokens == 3
    assert not trial.asked("large")


async def test_a_break_before_the_release_falls_through():
    trial = bench(0.5, small=Script(text=FIVE, cut_after=4))
    events = await trial.events()
    assert text(events) == "six"


async def test_a_slow_look_does_not_keep_the_stream_waiting_and_counts_when_it_is_there():
    go = asyncio.Event()

    class Slow(GrowingJudge):
        async def judge(self, request, completion):
            if completion.partial:
                await go.wait()
            return await super().judge(request, completion)

    class Watched(ScriptedBackend):
        async def stream(self, request):
            taken = 0
            async for chunk in super().stream(request):
                taken += 1
                if taken == 8:
                    go.set()
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                yield chunk

    words = " ".join(["word"] * 10)
    small = replace(tier("small"), backend=Watched(answers=[words]))
    trial = Bench(small, tier("large"), judge=Slow(0.95, 0.9), arm=EARLY)
    async with asyncio.timeout(5):
        events = await trial.events()
    assert text(events) == words
    assert events[-1].result.attempts[0].commit is not None


async def test_a_look_that_is_too_late_changes_nothing_and_is_not_waited_for():
    class Never(GrowingJudge):
        async def judge(self, request, completion):
            if completion.partial:
                await asyncio.Event().wait()
            return await super().judge(request, completion)

    trial = bench(0.9, judge=Never)
    async with asyncio.timeout(5):
        result = await trial.live()
    assert result.attempts[0].commit is None
    assert result.completion.text == FIVE


async def test_half_a_tool_call_is_not_released_with_the_start():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    half = {"index": 0, **call, "function": {"name": "look", "arguments": "{"}}
    rest = {"index": 0, "function": {"arguments": "}"}}

    class Calling(ScriptedBackend):
        async def stream(self, request):
            for word in ("a ", "b "):
                yield Chunk(choices=[{"index": 0, "delta": {"content": word}}])
            for part in (half, rest):
                yield Chunk(choices=[{"index": 0, "delta": {"tool_calls": [part]}}])
            yield Chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])
            whole = Choice(text="a b ", tool_calls=[call], finish_reason="tool_calls")
            yield Chunk(completion=Completion(choices=[whole], tier="small"))

    small = replace(tier("small"), backend=Calling())
    trial = Bench(small, tier("large"), judge=GrowingJudge(0.95, 0.9), arm=EARLY)
    events = await trial.events()
    assert events[-1].result.attempts[0].commit is not None
    calls = [
        part
        for event in events
        if isinstance(event, Delta)
        for choice in event.choices
        for part in (choice.get("delta") or {}).get("tool_calls") or ()
    ]
    assert [part["function"]["arguments"] for part in calls] == ["{}"]
    assert text(events) == "a b "


async def test_another_judge_than_the_steps_may_look_and_gets_what_it_needs():
    rule = CommitRule(after_tokens=2, at=0.9, judge="sure")
    arm = ladder(Rung(tier="small", judge="told", accept_at=0.8, commit=rule), Rung(tier="large"))
    sure, told = GrowingJudge(0.95, name="sure", logprobs=True), FixedJudge(0.9)
    trial = bench(0.9, arm=arm)
    snapshot = replace(trial.engine.snapshot, judges={"sure": sure, "told": told})
    trial.engine.snapshot = snapshot
    result = await trial.live()
    assert trial.asked("small")[0].params["logprobs"]
    assert result.attempts[1].step.judge == "sure"
    assert [seen.partial for seen in sure.seen] == [True]
    assert not told.seen, "it may ask a model, which is not worth its price any more"
    assert "it is not judged as a whole" in result.reason


async def test_a_bug_in_the_look_is_not_swallowed():
    trial = bench(ZeroDivisionError("bug"))
    with pytest.raises(ZeroDivisionError):
        await trial.live()
    assert trial.sink.results[0].error.type == "ZeroDivisionError"


def test_a_beginning_leaves_out_the_character_that_has_not_come_in_whole():
    entries = [
        {"token": "a", "logprob": -0.1, "bytes": [97]},
        {"token": "\\xc3", "logprob": -0.1, "bytes": [195]},
        {"token": "\\xa9", "logprob": -0.1, "bytes": [169]},
    ]
    whole = Completion(choices=[Choice(text="a\u00e9", finish_reason="stop", logprobs=entries)])
    start = beginning(whole, 2)
    assert (start.text, len(start.logprobs), start.finish_reason) == ("a", 2, None)
    assert beginning(whole, 3).text == "a\u00e9"


def test_without_log_probabilities_all_the_text_there_is_stays():
    whole = Completion(choices=[Choice(text="a b", finish_reason="stop")])
    assert beginning(whole, 1).text == "a b"
    assert beginning(whole, 1).partial


def test_a_score_that_nobody_gave_meets_no_rule():
    rule = CommitRule(after_tokens=1, at=0.5)
    assert rule.met_by(Verdict(judge="j", score=0.5).score)
    assert not rule.met_by(0.499)
    assert not rule.met_by(None)


class Numbered(Traces):
    """Says which attempt a call is."""

    def placed(self, request, index):
        return replace(request, context={"attempt": str(index)})


class PlacedJudge(GrowingJudge):
    """Keeps where it was told to be."""

    def __init__(self, *scores, **needs):
        super().__init__(*scores, **needs)
        self.places = []

    async def judge(self, request, completion):
        self.places.append(dict(request.context))
        return await super().judge(request, completion)


async def test_a_look_and_the_judging_of_the_whole_are_calls_of_their_own_in_a_trace():
    trial = bench(0.95, 0.9, judge=PlacedJudge)
    engine = CascadeEngine(trial.engine.snapshot, MemorySink(), traces=Numbered())
    events = [event async for event in engine.events(request(), EARLY)]
    assert [attempt.kind for attempt in events[-1].result.attempts] == [
        Kind.ANSWER,
        Kind.JUDGE,
        Kind.JUDGE,
    ]
    assert trial.engine.snapshot.judges["told"].places == [{"attempt": "1"}, {"attempt": "2"}]
