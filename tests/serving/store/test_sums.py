import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.audit import record
from cascade.commit import Commit
from cascade.types import Kind, Outcome, Step
from serving.store.rows import decode, encode
from serving.store.sums import (
    DAY,
    HOUR,
    SILENT,
    Sums,
    add_calls,
    add_request,
    add_said,
    score_bin,
    time_bin,
    time_of,
)
from serving.store.tables import call_sums, judge_sums, request_sums
from tests.builders import attempt, completion, escalated, result, verdict

AT = 1_790_000_000.25
HOUR_OF_IT = 1_789_999_200


def rows(given_result):
    entry = decode(encode(record(given_result)))
    return entry.requests[0], entry.attempts


def said(*scores):
    return [{"score": score} for score in scores]


def counted(given_result, heard=()):
    sums = Sums()
    add_request(sums, *rows(given_result), heard)
    return sums


def judged(sums):
    names = ("answers", "accepted", "score_micro", "labelled", "label_micro", "disagreed")
    return {
        key[1:]: dict(zip(names, map(int, numbers), strict=True))
        for key, numbers in sums.of[judge_sums].items()
    }


def test_a_request_counts_in_its_hour_and_in_its_day():
    (hour, day) = list(counted(escalated("r", started_at=AT)).rows(request_sums))
    assert (hour["span"], hour["at"]) == (HOUR, HOUR_OF_IT)
    assert (day["span"], day["at"]) == (DAY, HOUR_OF_IT // DAY * DAY)
    assert hour["requests"] == day["requests"] == hour["escalated"] == 1
    assert hour["cost_pico"] == 1_720_000 + 34_400_000
    assert (hour["tenant"], hour["arm"], hour["tier"]) == ("default", "cascade", "large")


def test_what_a_key_does_not_apply_to_is_an_empty_text():
    (row, _) = counted(result("r", experiment=None, arm=None, completion=None, attempts=())).rows(
        request_sums
    )
    assert (row["experiment"], row["arm"], row["tier"]) == ("", "", "")


def test_sums_of_several_requests_add_up():
    sums = counted(escalated("a"))
    add_request(sums, *rows(escalated("b")), ())
    assert [row["requests"] for row in sums.rows(request_sums)] == [2, 2]
    assert {
        row["tier"]: row["calls"] for row in sums.rows(call_sums) if row["kind"] == "answer"
    } == {
        "small": 2,
        "large": 2,
    }


def test_an_answer_that_was_released_early_and_never_judged_as_a_whole_is_not_silent():
    step = Step(tier="small", judge="llm")
    released = attempt(
        step=step, commit=Commit(judge="growing", tokens=32, score=0.9, at=0.8), verdict=None
    )
    look = attempt(
        1,
        kind=Kind.JUDGE,
        step=Step(tier="small", judge="growing"),
        completion=None,
        verdict=verdict(0.9, judge="growing"),
    )
    assert judged(counted(result("r", attempts=(released, look)))) == {}


def test_a_judge_that_failed_or_could_not_tell_is_silent():
    step = Step(tier="small", judge="llm")
    failed = attempt(step=step, verdict=None, outcome=Outcome.REJECTED)
    tried = attempt(1, kind=Kind.JUDGE, step=step, completion=None, outcome=Outcome.JUDGE_ERROR)
    found = judged(counted(result("r", attempts=(failed, tried))))
    assert list(found) == [("llm", "small", SILENT)]
    unsure = attempt(step=step, verdict=verdict(None), outcome=Outcome.REJECTED)
    assert list(judged(counted(result("r", attempts=(unsure,))))) == [("llm", "small", SILENT)]


def test_feedback_is_held_against_the_score_of_the_answer_that_was_served():
    step = Step(tier="small", judge="logprob")
    sure = attempt(step=step, verdict=verdict(0.93), threshold=0.7)
    found = judged(counted(result("r", attempts=(sure,)), said(0.0, 0.5, None)))
    assert found == {
        ("logprob", "small", 18): {
            "answers": 1,
            "accepted": 1,
            "score_micro": 930_000,
            "labelled": 1,
            "label_micro": 250_000,
            "disagreed": 1,
        }
    }
    unserved = judged(counted(escalated("r"), said(1.0)))
    assert [each["labelled"] for each in unserved.values()] == [0]


def test_a_later_word_takes_the_earlier_one_off_again():
    step = Step(tier="small", judge="logprob")
    request, calls = rows(result("r", attempts=(attempt(step=step, verdict=verdict(0.93)),)))
    first, later = Sums(), Sums()
    add_request(first, request, calls, said(0.2))
    add_said(first, request, calls, said(0.2), said(1.0, 0.9))
    add_request(later, request, calls, said(1.0, 0.9))
    for table in (request_sums, judge_sums):
        assert list(first.rows(table)) == list(later.rows(table))


def test_a_judge_at_work_in_the_background_is_no_call_of_the_tier():
    sums = Sums()
    request, _ = rows(result("r"))
    late = [
        attempt(3, kind=Kind.SHADOW, tier="large", propensity=0.1),
        attempt(4, kind=Kind.SHADOW, step=Step(tier="large", judge="llm"), completion=None),
    ]
    add_calls(sums, request, rows(result("r", attempts=tuple(late)))[1])
    assert sorted(row["kind"] for row in sums.rows(call_sums)) == [
        *("judge", "judge"),
        *("shadow", "shadow"),
    ]


def test_tokens_of_calls_that_did_not_report_their_cache_do_not_count_for_its_share():
    from tests.builders import usage

    quiet = attempt(completion=completion(usage=usage(input=100, cache_read=None)))
    (row, _) = counted(result("r", attempts=(quiet,))).rows(call_sums)
    assert (row["input_tokens"], row["cache_reported"]) == (100, 0)


@given(st.floats(min_value=1e-3, max_value=1e9))
def test_a_time_is_told_within_two_percent(milliseconds):
    assert math.isclose(time_of(time_bin(milliseconds)), milliseconds, rel_tol=0.0201)


@pytest.mark.parametrize(("score", "place"), [(None, SILENT), (0.0, 0), (0.999, 19), (1.0, 19)])
def test_bins_of_scores(score, place):
    assert score_bin(score) == place
