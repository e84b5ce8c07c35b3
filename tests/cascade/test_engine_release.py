"""What of an answer goes out when, and what becomes of a request whose client leaves."""

import asyncio
from dataclasses import replace

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.result import AttemptFinished, AttemptStarted, Delta, Finished
from cascade.types import Chunk, Kind, Outcome
from tests.engines import Bench, FixedJudge, Greedy, request, tier


def text(events):
    return "".join(
        (choice.get("delta") or {}).get("content") or ""
        for event in events
        if isinstance(event, Delta)
        for choice in event.choices
    )


async def test_an_unjudged_step_streams_live():
    arm = Arm(name=None, policy=FixedPolicy(name="always-small", tier="small"))
    bench = Bench(tier("small", Script(text="one two three", token_seconds=0.001)), arm=arm)
    kinds = [type(event) for event in await bench.events()]
    assert kinds[0] is AttemptStarted
    assert kinds[-1] is Finished
    last = len(kinds) - 1 - kinds[::-1].index(AttemptFinished)
    assert Delta in kinds[1:last]


async def test_a_judged_step_releases_nothing_before_it_is_accepted():
    bench = Bench(tier("small", "one two"), tier("large", "three"), judge=FixedJudge(0.1))
    events = await bench.events()
    assert text(events) == "three"
    assert {e.tier for e in events if isinstance(e, Delta)} == {"large"}


async def test_an_accepted_answer_is_released_after_its_attempt_finished():
    bench = Bench(tier("small", "one two"), tier("large"), judge=FixedJudge(0.9))
    kinds = [type(event) for event in await bench.events()]
    assert kinds.index(AttemptFinished) < kinds.index(Delta)


async def test_a_whole_answer_is_not_told_in_pieces():
    bench = Bench(tier("small", "one two"), judge=FixedJudge(0.9))
    events = [event async for event in bench.engine.events(request(), bench.arm, live=False)]
    assert not any(isinstance(event, Delta) for event in events)
    assert events[-1].result.completion.text == "one two"
    assert events[-1].result.released_characters == len("one two")


async def test_a_cut_before_any_text_falls_through_and_after_text_ends_the_stream():
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small", fallback=["large"]))
    early = Bench(tier("small", Script(text="a b", cut_after=0)), tier("large", "c"), arm=arm)
    result = await early.run()
    assert result.completion.text == "c"
    assert result.degraded

    late = Bench(tier("small", Script(text="a b", cut_after=1)), tier("large", "c"), arm=arm)
    events = await late.events()
    result = events[-1].result
    assert text(events) == "a"
    assert result.error.type == "StreamBrokenError"
    assert result.released_characters == 1
    assert result.attempts[0].completion.partial
    assert result.attempts[0].completion.text == "a"
    assert result.attempts[0].usage_estimated
    assert not late.asked("large")


async def test_a_cut_judged_answer_is_never_accepted():
    judge = FixedJudge(1.0)
    bench = Bench(tier("small", Script(text="a b", cut_after=1)), tier("large", "c"), judge=judge)
    result = await bench.run()
    assert result.completion.text == "c"
    assert not judge.seen


async def test_what_a_judge_needs_is_asked_for_and_taken_out_of_the_answer():
    judge = FixedJudge(0.9, logprobs=True, top_logprobs=2)
    bench = Bench(tier("small", "one two"), tier("large"), judge=judge)
    events = await bench.events()
    [asked] = bench.asked("small")
    assert asked.params == {"logprobs": True, "top_logprobs": 2}
    assert judge.seen[0].logprobs
    assert all("logprobs" not in c for e in events if isinstance(e, Delta) for c in e.choices)


async def test_the_client_keeps_its_own_logprobs_in_the_number_it_asked_for():
    judge = FixedJudge(0.9, logprobs=True, top_logprobs=2)
    bench = Bench(tier("small", "one"), tier("large"), judge=judge)
    events = await bench.events(request(logprobs=True, top_logprobs=5))
    assert bench.asked("small")[0].params["top_logprobs"] == 5
    shown = [
        c["logprobs"] for e in events if isinstance(e, Delta) for c in e.choices if "logprobs" in c
    ]
    assert [len(entry["top_logprobs"]) for entry in shown[0]["content"]] == [5]

    bench = Bench(tier("small", "one"), tier("large"), judge=judge)
    events = await bench.events(request(logprobs=True))
    shown = [
        c["logprobs"] for e in events if isinstance(e, Delta) for c in e.choices if "logprobs" in c
    ]
    assert [entry["top_logprobs"] for entry in shown[0]["content"]] == [[]]


async def test_a_client_that_leaves_cancels_the_call_and_is_audited():
    small = tier("small", Script(text="a b c d", token_seconds=5))
    bench = Bench(small, tier("large"), judge=FixedJudge(0.9))
    task = asyncio.create_task(bench.run())
    while not bench.asked("small"):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = bench.sink.results
    assert result.cancelled
    assert result.attempts[0].outcome is Outcome.CANCELLED
    assert result.attempts[0].completion.text == "a"
    assert result.attempts[0].usage_estimated
    assert result.cost == result.attempts[0].cost


async def test_a_client_that_leaves_while_a_judge_looks_leaves_the_cost_open():
    class Slow(FixedJudge):
        async def judge(self, request, completion):
            await super().judge(request, completion)
            await asyncio.sleep(30)

    judge = Slow(0.9)
    bench = Bench(tier("small"), tier("large"), judge=judge)
    task = asyncio.create_task(bench.run())
    while not judge.seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = bench.sink.results
    assert [(a.kind, a.outcome) for a in result.attempts] == [
        (Kind.ANSWER, Outcome.CANCELLED),
        (Kind.JUDGE, Outcome.CANCELLED),
    ]
    assert result.cost is None


async def test_leaving_ends_the_upstream_call_before_the_events_are_closed():
    ended = []

    class Noting(ScriptedBackend):
        async def stream(self, request):
            try:
                async for chunk in super().stream(request):
                    yield chunk
            finally:
                ended.append(True)

    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
    small = replace(tier("small"), backend=Noting(answers=["a b c"]))
    events = Bench(small, arm=arm).engine.events(request(), arm)
    async for event in events:
        if isinstance(event, Delta):
            break
    await events.aclose()
    assert ended == [True]


async def test_a_token_without_text_keeps_its_log_probability():
    class Bytes(ScriptedBackend):
        async def stream(self, request):
            for text in ("", "\u00e9"):
                entry = {"token": text, "bytes": [195], "logprob": -0.5, "top_logprobs": []}
                piece = {"delta": {"content": text}, "logprobs": {"content": [entry]}}
                yield Chunk(choices=[piece])
            async for chunk in super().stream(request):
                yield chunk

    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
    bench = Bench(replace(tier("small"), backend=Bytes(answers=[""])), arm=arm)
    events = await bench.events(request(logprobs=True))
    shown = [c for e in events if isinstance(e, Delta) for c in e.choices if c.get("logprobs")]
    assert len(shown) == 2


async def test_closing_the_events_early_is_a_client_that_left():
    arm = Arm(name=None, policy=FixedPolicy(name="f", tier="small"))
    bench = Bench(tier("small", "a b c"), arm=arm)
    events = bench.engine.events(request(), arm)
    async for event in events:
        if isinstance(event, Delta):
            break
    await events.aclose()
    [result] = bench.sink.results
    assert result.cancelled
    assert result.released_characters == 1


async def test_a_policy_that_goes_on_after_releasing_an_answer_is_a_bug():
    bench = Bench(tier("small", "a"), arm=Arm(name=None, policy=Greedy()))
    with pytest.raises(RuntimeError, match="goes on after it released"):
        await bench.live()
