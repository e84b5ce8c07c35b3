import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.audit import record
from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import EstimatorError, JudgeError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.policies.ladder import LadderPolicy, Rung
from cascade.result import AttemptFinished, AttemptStarted, Delta, Finished
from cascade.types import FREE, Chunk, Kind, Outcome, Usage
from tests.engines import Bench, FixedJudge, card, ladder, request, tier


def text(events):
    return "".join(
        (choice.get("delta") or {}).get("content") or ""
        for event in events
        if isinstance(event, Delta)
        for choice in event.choices
    )


async def test_a_confident_answer_of_the_small_tier_is_accepted():
    bench = Bench(tier("small", "four"), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run()
    assert result.completion.text == "four"
    assert result.completion.tier == "small"
    assert result.completion.model == "small-model"
    assert [a.outcome for a in result.attempts if a.kind is Kind.ANSWER] == [Outcome.ACCEPTED]
    assert result.attempts[0].threshold == 0.8
    assert "0.900" in result.reason
    assert not bench.asked("large")
    assert not result.degraded


async def test_a_doubtful_answer_is_escalated_and_both_calls_are_paid_for():
    usage = Usage(input=100, cache_read=0, output=10)
    bench = Bench(
        tier("small", Script(text="five", usage=usage), prices=card("1", "0.1", "2")),
        tier("large", Script(text="four", usage=usage), prices=card("10", "1", "20")),
        judge=FixedJudge(0.3),
    )
    result = await bench.run()
    assert result.completion.text == "four"
    answers = [a for a in result.attempts if a.kind is Kind.ANSWER]
    assert [a.outcome for a in answers] == [Outcome.REJECTED, Outcome.ACCEPTED]
    assert answers[0].cost.total == Decimal("0.00012")
    assert answers[1].cost.total == Decimal("0.0012")
    assert result.cost.total == Decimal("0.00132")
    assert "is below 0.800" in answers[1].reason


async def test_a_score_equal_to_the_threshold_is_accepted():
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.8)).run()
    assert result.completion.tier == "small"


async def test_a_judge_that_cannot_tell_does_not_accept():
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(None)).run()
    assert result.completion.tier == "large"
    assert "cannot tell" in result.attempts[2].reason


async def test_a_judge_that_fails_does_not_accept_and_is_recorded():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(JudgeError("no idea")))
    result = await bench.run()
    assert result.completion.tier == "large"
    judge = result.attempts[1]
    assert (judge.kind, judge.outcome) == (Kind.JUDGE, Outcome.JUDGE_ERROR)
    assert judge.error.message == "no idea"


async def test_a_bug_in_a_judge_is_raised_and_still_audited():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        await bench.run()
    [result] = bench.sink.results
    assert result.error.type == "ZeroDivisionError"
    assert result.completion is None
    assert not result.cancelled


async def test_a_failing_small_tier_falls_through_to_the_large_one():
    small = tier("small", Script(error="BackendUnreachableError"))
    result = await Bench(small, tier("large", "four"), judge=FixedJudge(0.9)).run()
    assert result.completion.tier == "large"
    assert result.attempts[0].outcome is Outcome.BACKEND_ERROR
    assert result.attempts[0].cost == FREE
    assert not result.degraded


async def test_a_refused_request_is_an_invalid_attempt():
    small = tier("small", Script(error="BackendRefusedError"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].outcome is Outcome.INVALID


async def test_the_rejected_answer_is_returned_degraded_when_the_last_tier_fails():
    large = tier("large", Script(error="BackendTimeoutError"))
    bench = Bench(tier("small", "maybe five"), large, judge=FixedJudge(0.3))
    events = await bench.events()
    result = events[-1].result
    assert result.completion.text == "maybe five"
    assert result.degraded
    assert text(events) == "maybe five"
    assert {e.tier for e in events if isinstance(e, Delta)} == {"small"}


async def test_nothing_answered_is_a_result_with_an_error_and_is_audited():
    bench = Bench(
        tier("small", Script(error="BackendConnectionError")),
        tier("large", Script(error="BackendOverloadedError")),
        judge=FixedJudge(0.9),
    )
    result = await bench.run()
    assert result.completion is None
    assert result.error.status == 429
    assert "small:" in result.error.message
    assert "large:" in result.error.message
    assert bench.sink.results == [result]


async def test_every_answered_request_is_audited_once():
    bench = Bench(tier("small"), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run()
    assert bench.sink.results == [result]


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
    assert result.attempts[0].cost is None
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


async def test_with_n_every_choice_must_pass():
    judge = FixedJudge(0.9, 0.2)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert len(judge.seen) == 2
    assert result.completion.tier == "large"
    judge = FixedJudge(0.9, None)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert result.attempts[0].verdict.score is None
    judge = FixedJudge(0.9, 0.85)
    result = await Bench(tier("small", "x"), tier("large", "y"), judge=judge).run(request(n=2))
    assert result.completion.tier == "small"
    assert [choice.text for choice in result.completion.choices] == ["x", "x"]


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
    assert result.cost is None


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


@pytest.mark.parametrize(
    ("error", "known"),
    [
        ("BackendUnreachableError", True),
        ("BackendOverloadedError", True),
        ("BackendServerError", True),
        ("BackendRefusedError", True),
        ("BackendTimeoutError", False),
        ("BackendConnectionError", False),
        ("BackendProtocolError", False),
    ],
)
async def test_a_failed_call_is_free_only_if_the_model_cannot_have_worked(error, known):
    bench = Bench(tier("small", Script(error=error)), tier("large"), judge=FixedJudge(0.9))
    result = await bench.run()
    assert result.attempts[0].cost == (FREE if known else None)
    assert (result.cost is not None) is known


async def test_a_judge_that_fails_says_what_it_spent():
    for cost in (FREE, None):
        judge = FixedJudge(JudgeError("no", cost=cost))
        result = await Bench(tier("small"), tier("large"), judge=judge).run()
        assert result.attempts[1].cost == cost
        assert (result.cost is None) is (cost is None)


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


async def test_a_model_without_a_name_is_called_by_its_tier():
    nameless = replace(tier("small"), backend=ScriptedBackend(answers=["a"], model=""))
    bench = Bench(nameless, tier("large"), judge=FixedJudge(0.9))
    events = await bench.events()
    assert {event.model for event in events if isinstance(event, Delta)} == {"small"}
    assert events[-1].result.completion.model == "small"


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


async def test_an_unknown_price_makes_the_cost_unknown():
    small = tier("small", Script(text="a", usage=None))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cost is None
    assert result.cost is None


async def test_the_cold_premium_is_what_a_warm_prompt_would_have_saved():
    usage = Usage(input=900, cache_read=100, output=10)
    small = tier("small", Script(text="a", usage=usage), prices=card("1", "0.1", "2"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cold_premium == 900 * Decimal("0.9") / 1_000_000
    unknown = tier("small", Script(text="a", usage=Usage(input=900, output=10)))
    result = await Bench(unknown, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.attempts[0].cold_premium is None


class Failing:
    name = "failing"

    def estimate(self, requests):
        raise EstimatorError("no model")


async def test_an_estimator_that_fails_leaves_the_flagged_prior():
    arm = ladder(Rung(tier="small", judge="told", accept_at=0.8), Rung(tier="large"))
    arm = Arm(name=None, policy=arm.policy, estimator=Failing())
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.9), arm=arm).run()
    assert result.beliefs.flags == {"fallback"}
    assert result.beliefs.mean == {"small": 0.5, "large": 0.5}


async def test_a_policy_sees_beliefs_after_the_verdict_and_the_log_those_before_it():
    policy = LadderPolicy(
        name="p", steps=[Rung(tier="small", judge="told", accept_at=0.8), Rung(tier="large")]
    )
    seen = []
    decide = policy.decide

    class Spy:
        name, steps = policy.name, policy.steps

        def decide(self, request, beliefs, quotes, attempts):
            seen.append(dict(beliefs.mean))
            return decide(request, beliefs, quotes, attempts)

    arm = Arm(name=None, policy=Spy())
    result = await Bench(tier("small"), tier("large"), judge=FixedJudge(0.9), arm=arm).run()
    assert seen == [{"small": 0.5, "large": 0.5}, {"small": 0.9, "large": 0.5}]
    assert result.beliefs.mean == seen[0]


class Greedy:
    name = "greedy"
    steps = ()

    def decide(self, request, beliefs, quotes, attempts):
        from cascade.types import Plan, Step

        return Plan(steps=[Step(tier="small")])


async def test_a_policy_that_goes_on_after_releasing_an_answer_is_a_bug():
    bench = Bench(tier("small", "a"), arm=Arm(name=None, policy=Greedy()))
    with pytest.raises(RuntimeError, match="goes on after it released"):
        await bench.run()


async def test_overhead_leaves_out_the_time_waited_for_models():
    small = tier("small", Script(text="a", first_token_seconds=0.05))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.seconds >= 0.05
    assert result.overhead_seconds < result.seconds - 0.045
    assert result.attempts[0].first_token_seconds >= 0.05


async def test_tool_calls_come_through_whole():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    small = tier("small", Script(text="", tool_calls=[call], finish_reason="tool_calls"))
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9)).run()
    assert result.completion.tool_calls == (call,)
    assert result.completion.finish_reason == "tool_calls"


PLAIN = frozenset({"logprobs"})


async def test_a_tier_that_cannot_serve_a_request_is_skipped_and_the_audit_row_says_why():
    bench = Bench(
        tier("small", "four", capabilities=PLAIN), tier("large", "4"), judge=FixedJudge(0.9)
    )
    result = await bench.run(request(reasoning_effort="high"))
    assert result.completion.tier == "large"
    assert not bench.asked("small")
    assert not result.degraded
    [attempt] = record(result).attempts
    assert attempt.reason == "the first step of the ladder; small does not offer reasoning"
    assert attempt.quoted_pico


async def test_when_the_last_tier_is_out_a_rejected_answer_is_the_best_there_is():
    bench = Bench(tier("small", "four"), tier("large", context_tokens=3), judge=FixedJudge(0.1))
    result = await bench.run(request("one two three four"))
    assert result.completion.tier == "small"
    assert result.degraded
    assert "large has a window of 3 tokens" in result.attempts[0].reason
    assert not bench.asked("large")


async def test_a_stand_in_for_a_tier_that_cannot_serve_says_so_and_is_degraded():
    policy = FixedPolicy(name="always-small", tier="small", fallback=("large",))
    bench = Bench(
        tier("small", capabilities=PLAIN), tier("large"), arm=Arm(name=None, policy=policy)
    )
    result = await bench.run(request(reasoning_effort="high"))
    assert result.completion.tier == "large"
    assert result.degraded
    assert result.reason == "large stands in for small, which cannot serve this request"


async def test_with_no_tier_left_the_client_is_told_what_was_missing_and_it_is_audited():
    bench = Bench(
        tier("small", capabilities=PLAIN), tier("large", output_tokens=5), judge=FixedJudge(0.9)
    )
    events = await bench.events(request(reasoning_effort="high", max_tokens=6))
    assert [type(event) for event in events] == [Finished]
    result = events[0].result
    missing = "small does not offer reasoning; large answers with at most 5 tokens, not 6"
    assert result.error.type == "NoFitError"
    assert (result.error.status, result.error.code) == (400, "no_tier_fits")
    assert result.error.message == f"no tier can serve this request: {missing}"
    assert result.cost == FREE
    assert bench.sink.results == [result]
    row = record(result)
    assert (row.status, row.error_status, row.answers) == ("error", 400, 0)
    assert row.reason == f"no step of the ladder is left; {missing}"


async def test_only_the_policys_own_tiers_are_held_against_a_request():
    arm = Arm(name=None, policy=FixedPolicy(name="large", tier="large"))
    bench = Bench(tier("small", capabilities=PLAIN), tier("large"), arm=arm)
    result = await bench.run(request(reasoning_effort="high"))
    assert result.attempts[0].reason == "always large"
    assert (result.reason, result.degraded) == ("always large", False)


async def test_a_failure_of_the_tiers_that_were_left_is_no_fault_of_the_clients():
    large = tier("large", Script(error="BackendServerError"))
    bench = Bench(tier("small", capabilities=PLAIN), large, judge=FixedJudge(0.9))
    result = await bench.run(request(reasoning_effort="high"))
    assert (result.error.type, result.error.status) == ("NoAnswerError", 502)
    assert "small does not offer reasoning" in result.attempts[0].reason


async def test_a_policy_that_asks_a_tier_that_was_left_out_is_a_bug():
    bench = Bench(tier("small", capabilities=PLAIN), arm=Arm(name=None, policy=Greedy()))
    with pytest.raises(RuntimeError, match="asks small, which was left out"):
        await bench.run(request(reasoning_effort="high"))


async def test_what_a_judge_needs_is_not_held_against_a_tier():
    small = tier("small", "four", capabilities=frozenset())
    result = await Bench(small, tier("large"), judge=FixedJudge(0.9, logprobs=True)).run()
    assert result.completion.tier == "small"
