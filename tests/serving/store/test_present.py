import json
from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console, RenderableType

from cascade.audit import record
from cascade.prefix import Fingerprint, Segment
from cascade.quote import Quote, Shared
from cascade.types import Failure, Kind, Outcome, Step, Verdict
from serving.store.feedback import Feedback
from serving.store.formats import dollars, duration, millions
from serving.store.present import request_json, request_view, tail_table
from serving.store.present_stats import stats_json, stats_view
from serving.store.stats import ArmUse, JudgeUse, Quantiles, Stats, TierUse
from tests.builders import attempt, completion, cost, escalated, failed, request, result

WIDTH = 100


def shown(thing: RenderableType, width: int = WIDTH) -> str:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(thing)
    return capture.get()


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999_999, "999,999"), (8_640_000, "8.6 M"), (1_219_790_400, "1,220 M")],
)
def test_a_large_count_is_short(number: int, text: str) -> None:
    assert millions(number) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "unknown"),
        ("0", "$0.00"),
        ("0.00000172", "$0.00000172"),
        ("0.000000000001", "$0.00000000000100"),
        ("0.0344", "$0.0344"),
        ("0.5", "$0.500"),
        ("12.345", "$12.34"),
        ("1234.5", "$1,234.50"),
        ("-0.0123", "$-0.0123"),
    ],
)
def test_money_shows_three_digits_that_say_something(amount: str | None, text: str) -> None:
    assert dollars(None if amount is None else Decimal(amount)) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "·"),
        (0.04, "0.0 ms"),
        (3.14, "3.1 ms"),
        (9.96, "10 ms"),
        (812.4, "812 ms"),
        (999.7, "1.00 s"),
        (61830.0, "61.83 s"),
    ],
)
def test_a_time_shows_three_digits_at_most(milliseconds: float | None, text: str) -> None:
    assert duration(milliseconds) == text


def test_show_explains_the_decision_with_its_numbers() -> None:
    text = shown(request_view(record(escalated("0f3acc19d2c14b0f"))))
    for part in (
        "request 0f3acc19d2c14b0f",
        "2026-09-21 14:13:20.250 UTC",
        "auto (experiment auto, arm cascade, policy default)",
        "large (qwen2.5-coder-1.5b)",
        "tenant default, session s-1",
        "small 0.41, large 0.78",
        "length 16",
        "0.412 < 0.700",
        "$0.00000172",
        "$0.0000344",
        "rejected",
        "accepted",
        "200 ms",
        "600 ms",
        "logprob gives small's answer 0.412, which is below 0.700",
        "the mean token was given a probability of 0.9",
        "mean_logprob -0.105, min_logprob -1.5",
        "quoted $0.00000200, billed $0.00000172, $0.00000100 of it because its cache was cold",
        "total $0.0000361 in 810 ms, of which 3.0 ms were Cascade's own",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_show_says_what_of_a_quote_is_credited_for_what_the_call_warms() -> None:
    quote = Quote(tier="small", dollars=Decimal("0.000002"), shared=Shared(credit=0.0000005))
    text = shown(request_view(record(result("r", attempts=(attempt(quote=quote),)))))
    assert "quoted $0.00000200 less $0.000000500 for what it warms, billed $0.00000172" in text


def test_show_of_a_request_nobody_answered_says_what_failed() -> None:
    fault = Failure(type="NoAnswerError", message="every model failed", status=503)
    judge = attempt(
        1,
        kind=Kind.JUDGE,
        step=Step(tier="small", judge="llm"),
        outcome=Outcome.JUDGE_ERROR,
        completion=None,
        error=Failure(type="JudgeError", message="it timed out", status=500),
        cost=None,
    )
    given = result("r", attempts=(failed(cost=None), judge), error=fault, beliefs=None)
    text = shown(request_view(record(given)))
    for part in (
        "answered by  nobody",
        "NoAnswerError: every model failed",
        "BackendConnectionError: connection refused",
        "llm judges small",
        "JudgeError: it timed out",
        "No estimate was made.",
        "total unknown",
    ):
        assert part in text


def test_show_says_what_was_estimated_how_often_it_asked_and_what_was_saved() -> None:
    cut = attempt(usage_estimated=True, completion=completion(tries=3, partial=True))
    given = result("r", attempts=(cut,), baseline=cost("0.00000688"))
    text = shown(request_view(record(given)))
    for part in (
        "~$0.00000172",
        "asked 3 times",
        "the model did not say what it used: tokens and bill are estimated",
        "the dearest tier alone: $0.00000688, saved $0.00000516 (75.0%)",
    ):
        assert part in text
    usual = shown(request_view(record(result("r"))))
    for part in ("~", "asked 1", "did not say", "dearest"):
        assert part not in usual


def test_show_says_what_of_a_prompt_was_expected_to_be_warm_and_how_long_its_segments_are() -> None:
    quote = Quote(tier="small", warm_tokens=1200, cold_tokens=300, dollars=Decimal("0.001"))
    segments = (
        Segment(name="system", tokens=1400, raw="a"),
        Segment(name="suffix", tokens=100, raw="b"),
    )
    known = result(attempts=(attempt(quote=quote),), fingerprint=Fingerprint(segments=segments))
    text = shown(request_view(record(known)))
    assert "1,200 of 1,500 prompt tokens were expected to be warm" in text
    assert "system 1,400, suffix 100" in text
    plain = shown(request_view(record(result())))
    assert "expected to be warm" not in plain
    assert "segments" not in plain


def test_show_of_an_unknown_cost_claims_no_saving() -> None:
    given = result("r", attempts=(failed(cost=None),), baseline=cost())
    text = shown(request_view(record(given)))
    assert "the dearest tier alone: $0.00000172" in text
    assert "saved" not in text


SAID = Feedback(
    request_id="r",
    tenant="default",
    source="ci",
    given_at=1_790_000_000.25,
    score=0.25,
    label="bad",
    correction="42\x1b[2J",
    comment="it said 41",
)


def test_show_says_what_was_said_of_the_answer() -> None:
    text = shown(request_view(record(result("r")), [SAID]))
    said = "score 0.25; bad; should have been: 42\ufffd[2J; it said 41"
    assert f"feedback of ci, 2026-09-21 14:13:20.250 UTC: {said}" in " ".join(text.split())
    assert "feedback" not in shown(request_view(record(result("r"))))


def test_a_comparison_says_which_answer_was_better() -> None:
    text = shown(
        request_view(record(result("r")), [replace(SAID, compared_to="q", preferred="other")])
    )
    assert "worse than that of q" in " ".join(text.split())


def test_feedback_is_in_the_json() -> None:
    value = json.loads(json.dumps(request_json(record(result("r", baseline=cost())), [SAID])))
    assert value["feedback"][0]["score"] == 0.25
    assert value["feedback"][0]["given_at"] == "2026-09-21T14:13:20.250000+00:00"
    assert value["baseline_usd"] == "0.00000172"
    assert value["attempts"][0]["usage_estimated"] is False
    assert value["attempts"][0]["tries"] == 1


def test_show_of_a_request_that_called_nothing() -> None:
    assert "No model was called." in shown(request_view(record(result(attempts=(), beliefs=None))))


def test_a_judge_that_cannot_tell_is_shown_as_such() -> None:
    step = Step(tier="small", judge="logprob")
    silent = Verdict(judge="logprob", score=None, reason="no logprobs came")
    answer = attempt(step=step, outcome=Outcome.REJECTED, verdict=silent)
    judge = attempt(1, kind=Kind.JUDGE, step=step, completion=None, verdict=silent)
    text = shown(request_view(record(result(attempts=(answer, judge)))))
    assert "cannot tell" in text
    assert "no logprobs came" in text


def test_tail_is_one_line_a_request_and_shows_the_way_it_took() -> None:
    given = [record(escalated("0f3acc19d2c14b0f")), record(result("r2", degraded=True))]
    lines = shown(tail_table(given)).strip().splitlines()
    assert len(lines) == 2 + len(given)
    assert "0f3acc19d2c1" in lines[2]
    assert "small > large" in lines[2]
    assert "$0.0000361" in lines[2]
    assert "degraded" in lines[3]
    assert max(len(line) for line in lines) <= WIDTH


def test_what_a_client_sent_cannot_command_the_terminal() -> None:
    nasty = "\x1b[2J[bold red]boo[/]"
    given = record(result(request=request(id="r", session=nasty, tenant=nasty, tags={"a": nasty})))
    for view in (request_view(given), tail_table([given])):
        assert "\x1b" not in shown(view)
    assert "[bold red]boo[/]" in shown(request_view(given))


def test_a_request_as_json_has_exact_dollars_and_a_date() -> None:
    value = json.loads(json.dumps(request_json(record(escalated("r")))))
    assert value["id"] == "r"
    assert value["created_at"] == "2026-09-21T14:13:20.250000+00:00"
    assert value["cost_usd"] == "0.00003612"
    assert [call["cost_usd"] for call in value["attempts"]] == ["0.00000172", "0", "0.0000344"]
    assert value["attempts"][1]["features"]["mean_logprob"] == -0.105
    assert value["attempts"][1]["quoted_usd"] is None


FOUND = Stats(
    requests=1200,
    first_at=1_790_000_000.25,
    last_at=1_790_000_100.0,
    escalated=300,
    dollars=Decimal("0.0412"),
    unknown_cost=7,
    compared=1100,
    baseline=Decimal("0.1"),
    saved=Decimal("0.06"),
    scored=12,
    mean_score=0.75,
    statuses={"ok": 1190, "degraded": 10},
    arms=[
        ArmUse(
            policy="default",
            experiment="auto",
            arm="cascade",
            requests=1200,
            escalated=300,
            dollars=Decimal("0.0412"),
            unknown_cost=7,
        )
    ],
    tiers=[
        TierUse(
            tier="small",
            answered=900,
            calls=1200,
            failed=3,
            input_tokens=48_000,
            cache_read_tokens=72_000,
            cache_write_tokens=0,
            output_tokens=14_400,
            reasoning_tokens=0,
            cache_reported=120_000,
            dollars=Decimal("0.00206"),
            unknown_cost=0,
        ),
        TierUse(
            tier="large",
            answered=300,
            calls=300,
            failed=0,
            input_tokens=1,
            cache_read_tokens=0,
            cache_write_tokens=0,
            output_tokens=1,
            reasoning_tokens=0,
            cache_reported=0,
            dollars=Decimal(0),
            unknown_cost=300,
        ),
    ],
    judges=[
        JudgeUse(
            judge="logprob", tier="small", answers=1197, accepted=900, silent=4, mean_score=0.8125
        )
    ],
    duration=Quantiles(p50=210.0, p95=812.0, p99=1830.0),
    overhead=Quantiles(p50=2.5, p95=4.0, p99=9.0),
    first_token=None,
)


def test_stats_show_their_numbers() -> None:
    text = shown(stats_view(FOUND))
    for part in (
        "1,200 requests",
        "$0.0412 (and 7 of unknown cost)",
        "300 escalated (25.0%)",
        "1,190 ok",
        "≥ $0.0412",
        "$0.0000345",
        "75.0%",
        "72,000 (60.0%)",
        "not reported",
        "unknown",
        "75.2%",
        "0.812",
        "210 ms",
        "1.83 s",
        "2.5 ms",
        "saved $0.0600 (60.0%) against the dearest tier alone ($0.100 for the 1,100 requests",
        "requests scored: 12, 0.75 in the mean",
    ):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH


def test_stats_of_an_empty_log_say_so() -> None:
    nothing = Stats(
        requests=0,
        first_at=None,
        last_at=None,
        escalated=0,
        dollars=Decimal(0),
        unknown_cost=0,
        compared=0,
        baseline=Decimal(0),
        saved=Decimal(0),
        scored=0,
        mean_score=None,
        statuses={},
        arms=[],
        tiers=[],
        judges=[],
        duration=None,
        overhead=None,
        first_token=None,
    )
    assert "No requests in that time." in shown(stats_view(nothing))


def test_stats_as_json_have_decimal_dollars() -> None:
    value = json.loads(json.dumps(stats_json(FOUND)))
    assert value["dollars"] == "0.0412"
    assert value["arms"][0]["dollars"] == "0.0412"
    assert value["tiers"][0]["cached_share"] == 0.6
    assert value["tiers"][1]["cached_share"] is None
    assert value["duration"] == {"p50": 210.0, "p95": 812.0, "p99": 1830.0}
    assert value["first_token"] is None
