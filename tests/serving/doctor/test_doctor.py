from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from cascade.caches import CacheCard
from cascade.prefix import Fingerprint
from cascade.pricing import PriceCard, Rates
from cascade.result import CascadeResult
from cascade.types import Outcome
from serving.doctor.calls import Call
from serving.doctor.causes import Cause
from serving.doctor.doctor import diagnose
from serving.doctor.losses import TierFacts, losses, lost_pico
from serving.doctor.memory import Memory
from tests.builders import failed
from tests.serving.doctor.logs import TOOLS, asked, fingerprint, logged, unlogged

DATED = "It is <date {}>."
NAMED = "Request <id {}>."
TALK = ("u1", "a:1", "u2", "a:2", "u3", "a:3", "u4", "a:4", "u5", "a:5", "u6", "a:6")


def first(**parts: Any) -> CascadeResult:
    return asked("one", 0, 0, "u1", **parts)


def then(read: int, *turns: str, seconds: float = 60, **parts: Any) -> CascadeResult:
    return asked("two", seconds, read, *(turns or ("u1", "a:1", "u2")), **parts)


CASES: list[tuple[str, Sequence[CascadeResult], int]] = [
    (
        "a date or time in the system prompt changes from request to request",
        [first(system=DATED.format("10:00")), then(500, system=DATED.format("10:01"))],
        1200,
    ),
    (
        "an id in the system prompt changes from request to request",
        [first(system=NAMED.format("f00")), then(500, system=NAMED.format("ba5"))],
        1200,
    ),
    ("the tools came in another order", [first(), then(0, tools=TOOLS[::-1])], 1700),
    (
        "the tools changed (5 are now 4)",
        [first(), then(400, tools=TOOLS[:4])],
        1300,
    ),
    (
        "the retrieved documents came in another order",
        [first(pack=("a", "b")), then(1500, pack=("b", "a"))],
        800,
    ),
    (
        "the history was cut (12 messages are now 4)",
        [asked("one", 0, 0, *TALK), then(1500, *TALK[-4:], "u7")],
        1000,  # 1,500 + 5 * 200 were sent before in some place
    ),
    (
        "the history was rewritten (summary or compaction: 11 messages are now 3)",
        [asked("one", 0, 0, *TALK[:-1]), then(1500, "sum", "a:5", "u6", "a:6", "u7")],
        1000,
    ),
    (
        "a message of the history was changed after it had been sent (message 2 of 7)",
        [asked("one", 0, 0, *TALK[:5]), then(1700, "u1", "a:1!", *TALK[2:7])],
        800,
    ),
    (
        "the latest message was sent differently once it was history",
        [asked("one", 0, 0, *TALK[:5]), then(2300, *TALK[:4], "u3!", "a:3", "u4")],
        200,
    ),
    (
        "a sub-agent call: the same session with another system prompt",
        [asked("one", 0, 0, *TALK[:5]), then(500, "do this", system="You plan.")],
        1200,
    ),
    (
        "nothing changed: the entry expired (gap of 11 min against a TTL of 5 min)",
        [first(), then(0, seconds=660)],
        1700,
    ),
    (
        "nothing changed: the entry was gone before its time (60 s after the last use)",
        [first(), then(0)],
        1700,
    ),
    (
        (
            "sent before the first answer had begun: until then there is no entry to read "
            "(0.5 s apart)"
        ),
        [first(took=2.0), then(0, "u1", seconds=0.5)],
        1700,
    ),
    (
        "another replica was asked, which had not seen this prompt (b instead of a)",
        [first(replica="a"), then(0, replica="b")],
        1700,
    ),
    (
        (
            "another tier answered before: the tier had not seen this conversation "
            "(small before large)"
        ),
        [first(tier="small"), then(0)],
        1700,
    ),
    (
        (
            "another tier answered in between: the tier had not seen the last turns "
            "(small before large)"
        ),
        [
            first(),
            asked("between", 10, 1700, *TALK[:5], tier="small"),
            then(1700, *TALK[:7]),
        ],
        800,
    ),
]


@pytest.mark.parametrize(("said", "log", "tokens"), CASES, ids=[case[0][:40] for case in CASES])
def test_each_cause_is_told_in_words_with_what_it_cost(
    engine: Engine, said: str, log: Sequence[CascadeResult], tokens: int
) -> None:
    (found,) = diagnose(logged(engine, *log)).findings
    assert found.said == said
    assert (found.calls, found.tokens) == (1, tokens)
    # Written at $3.75 per million instead of read at $0.30.
    assert found.dollars == tokens * Decimal("3.45") / 10**6
    assert (found.before, found.after) == (log[-2].request.id, "two")
    assert found.cause.advice.endswith(".")


def test_a_conversation_that_is_read_as_a_whole_has_no_finding(engine: Engine) -> None:
    talk = [
        asked(f"r{n}", 60 * n, 0 if not n else 1500 + 400 * n - 200, *TALK[: 2 * n + 1])
        for n in range(6)
    ]
    found = diagnose(logged(engine, *talk))
    assert found.findings == ()
    (tier,) = found.tiers
    assert (tier.calls, tier.first, tier.missed, tier.lost_tokens) == (6, 1, 0, 0)
    assert tier.possible == tier.by_token


def test_where_the_tier_reports_tokens_their_estimates_do_not_count(engine: Engine) -> None:
    """The service learns how many tokens a byte has, so estimates of one prompt may differ."""
    early = fingerprint(["u1"])
    doubled = Fingerprint(segments=[replace(s, tokens=2 * s.tokens) for s in early.segments])
    log = logged(engine, replace(first(), fingerprint=doubled), then(1700))
    assert diagnose(log).findings == ()


def test_hit_rates_by_token_and_by_request_stand_side_by_side(engine: Engine) -> None:
    log = [first(), then(1500), asked("three", 120, 0, "u1", session="t", tools=(), system="")]
    (tier,) = diagnose(logged(engine, *log)).tiers
    assert tier.by_token == 1500 / (1700 + 2100 + 200)
    assert tier.by_request == pytest.approx(1500 / 2100 / 3)


def test_calls_that_report_nothing_are_counted_apart_and_never_as_zero(engine: Engine) -> None:
    log = [first(), then(1700), asked("three", 120, None, *TALK[:5], written=None)]
    found = diagnose(logged(engine, *log))
    (tier,) = found.tiers
    assert (tier.calls, tier.unreported) == (3, 1)
    assert tier.by_token == 1700 / (1700 + 2100)
    assert found.findings == ()


def test_what_reports_nothing_still_warms_what_comes_after_it(engine: Engine) -> None:
    log = [asked("one", 0, None, "u1", written=None), then(0)]
    (finding,) = diagnose(logged(engine, *log)).findings
    assert (finding.cause, finding.tokens) == (Cause("evicted"), 1700)


def test_rows_without_segments_have_no_cause(engine: Engine) -> None:
    log = [replace(first(), fingerprint=None), replace(then(0), fingerprint=None)]
    found = diagnose(logged(engine, *log))
    assert found.findings == ()
    assert (found.tiers[0].unknown, found.tiers[0].prompt_tokens) == (2, 3800)


def test_a_call_that_failed_is_no_miss(engine: Engine) -> None:
    down = replace(then(0), attempts=(failed(tier="large"),))
    found = diagnose(logged(engine, first(), down))
    assert (found.calls, found.findings) == (1, ())


def test_the_answers_share_of_the_spend_is_what_no_cache_saves(engine: Engine) -> None:
    # 1,700 tokens written at 3.75 and 100 at 15 for the answer: 6,375 and 1,500 millionths.
    assert diagnose(logged(engine, first())).output_share == pytest.approx(1500 / 7875)


def test_an_escalation_pays_for_a_conversation_that_the_large_tier_never_saw(
    engine: Engine,
) -> None:
    """Both calls of the second request have the same prompt; only the large one's was cold."""
    small = then(1700, tier="small").attempts[0]
    (large,) = then(0).attempts
    both = replace(
        then(0),
        attempts=(
            replace(small, outcome=Outcome.REJECTED),
            replace(large, index=1, started=3.0),
        ),
    )
    (finding,) = diagnose(logged(engine, first(tier="small"), both)).findings
    assert (finding.cause, finding.tokens) == (Cause("first_here"), 1700)
    assert finding.before == "one"


def test_a_sub_agent_does_not_hide_what_the_main_conversation_left_warm(engine: Engine) -> None:
    aside = {"system": "You plan.", "tools": ()}
    log = [
        asked("main", 0, 0, "u1"),
        asked("side", 10, 0, "p1", **aside),
        asked("main again", 20, 1700, "u1", "a:1", "u2"),
        asked("side again", 30, 1200, "p1", "a:p", "p2", **aside),
    ]
    (finding,) = diagnose(logged(engine, *log)).findings
    assert (finding.cause, finding.calls) == (Cause("side_call"), 1)
    assert finding.cause.fork


def test_a_call_can_lose_to_two_causes_and_each_token_counts_once(engine: Engine) -> None:
    changed = then(0, seconds=660, system=DATED.format(2))
    found = diagnose(logged(engine, first(system=DATED.format(1)), changed))
    lost = {each.cause.key: each.tokens for each in found.findings}
    assert lost == {"system_dates": 1200, "expired": 500}
    assert found.tokens == 1700
    assert found.dollars == 1700 * Decimal("3.45") / 10**6


def test_other_sessions_of_the_tenant_show_what_the_first_request_could_have_read(
    engine: Engine,
) -> None:
    log = [
        first(session="a", system=DATED.format(1)),
        asked("two", 60, 500, "elsewhere", session="b", system=DATED.format(2)),
        asked("three", 70, 500, "elsewhere", session="c", system=DATED.format(3), tenant="other"),
    ]
    found = diagnose(logged(engine, *log))
    (finding,) = found.findings
    assert (finding.cause.key, finding.tokens) == ("system_dates", 1000)
    assert (finding.before, finding.after) == ("one", "two")
    assert found.tiers[0].first == 2  # of the other tenant nothing is known


def test_a_compaction_under_a_new_session_is_a_fork_of_the_old_one(engine: Engine) -> None:
    log = [
        asked("one", 0, 0, *TALK[:-1], session="a"),
        then(1500, "sum", "a:5", "u6", "a:6", "u7", session="b"),
    ]
    (finding,) = diagnose(logged(engine, *log)).findings
    assert finding.cause == Cause("rewritten")
    assert finding.cause.fork


def test_a_stable_part_that_other_sessions_left_cold_is_told(engine: Engine) -> None:
    log = [first(session="a"), asked("two", 900, 0, "elsewhere", session="b")]
    (finding,) = diagnose(logged(engine, *log)).findings
    assert (finding.cause, finding.tokens) == (Cause("expired"), 1500)


CARDS: list[tuple[CacheCard, str]] = [
    (CacheCard(kind="ttl", ttl_seconds=3600), "evicted"),
    (CacheCard(kind="ttl", ttl_seconds=600), "expired"),
    (CacheCard(kind="blocks", block=16), "evicted"),
    (CacheCard(kind="ttl", ttl_seconds=600, minimum_tokens=4096), "too_short"),
]


@pytest.mark.parametrize(("card", "cause"), CARDS)
def test_the_tiers_card_says_how_long_an_entry_should_have_been_there(
    engine: Engine, card: CacheCard, cause: str
) -> None:
    log = logged(engine, first(written=None), then(0, seconds=660, written=None))
    (finding,) = diagnose(log, {"large": TierFacts(cache=card)}).findings
    assert finding.cause.key == cause


def test_what_was_written_for_an_hour_should_be_there_for_an_hour(engine: Engine) -> None:
    log = logged(engine, first(written="1h"), then(0, seconds=660))
    (finding,) = diagnose(log).findings
    assert finding.cause == Cause("evicted")


def test_without_a_premium_the_rates_on_the_row_tell_the_cost(engine: Engine) -> None:
    log = logged(engine, first(), then(500, system="You help a lot.", premium=False))
    (finding,) = diagnose(log).findings
    # 1,200 tokens at 3.75 - 0.30 dollars per million, both from what the call paid.
    assert (finding.dollars, finding.unpriced) == (Decimal("0.00414"), 0)


def test_without_a_read_on_the_row_the_tiers_card_tells_it_or_nobody_does(engine: Engine) -> None:
    log = logged(engine, first(), then(0, premium=False))
    assert diagnose(log).findings[0].unpriced == 1
    card = PriceCard(rates=Rates(input=Decimal(3), cache_read=Decimal("0.3"), output=Decimal(15)))
    priced = diagnose(log, {"large": TierFacts(prices=card)}).findings[0]
    assert (priced.dollars, priced.unpriced) == (1700 * Decimal("3.45") / 10**6, 0)


def test_a_loss_that_cost_less_than_nothing_has_its_example_as_well() -> None:
    """A card may price what is read above what is computed."""
    one, two = unlogged(asked("one", 0, 0, "u1"), asked("two", 9, 0, "u1", "a:1", "u2"))
    odd = [one, two._replace(paid=two.paid._replace(premium=-1_000_000))]
    [found] = diagnose(odd).findings
    assert found.dollars < 0
    assert (found.before, found.after) == ("one", "two")


def test_findings_come_dearest_first(engine: Engine) -> None:
    log = [
        first(),
        then(400, tools=TOOLS[:4]),
        asked("x", 70, 0, *TALK, session="t", system="T"),
        asked("y", 900, 0, *TALK, "u7", session="t", system="T"),
    ]
    found = diagnose(logged(engine, *log))
    assert [each.cause.key for each in found.findings] == ["expired", "tools_changed"]


def test_memory_of_sessions_is_bounded_and_forgets_the_oldest() -> None:
    log = unlogged(
        asked("a1", 0, 0, "a1", session="a", system="A"),
        asked("b1", 1, 0, "b1", session="b", system="B"),
        asked("a2", 900, 0, "a1", "a:1", "a2", session="a", system="A2"),
    )
    found = diagnose(log, memory=Memory(max_sessions=2))
    assert [each.cause.key for each in found.findings] == ["system_changed", "expired"]
    assert diagnose(log, memory=Memory(max_sessions=1)).findings == ()


CHANGES: list[dict[str, Any]] = [
    {},
    {"tools": TOOLS[::-1]},
    {"system": DATED.format(1)},
    {"system": DATED.format(2)},
    {"system": "Another."},
    {"pack": ("a", "b")},
    {"pack": ("b", "c")},
]
TURNS = [TALK[:1], TALK[:3], TALK[:7], TALK, (*TALK[-4:], "u7"), ("sum", "a:5", "u6", "a:6", "u7")]
EACH = st.tuples(
    st.sampled_from(TURNS),
    st.sampled_from(CHANGES),
    st.sampled_from(["small", "large"]),
    st.sampled_from(["s", "t", ""]),
    st.floats(0, 1),
    st.integers(1, 900),
)


def made(requests: Sequence[tuple[Any, ...]]) -> list[Call]:
    """Calls with odd premiums, so that shares of them do not come out even."""
    log, at = [], 0.0
    for number, (turns, parts, tier, session, share, gap) in enumerate(requests):
        at += gap
        whole = sum(each.tokens for each in fingerprint(turns, **parts).segments)
        read = int(share * whole)
        one = asked(f"r{number}", at, read, *turns, tier=tier, session=session, **parts)
        odd = replace(one.attempts[0], cold_premium=Decimal(7 * number + 1) / 10**12)
        log.append(replace(one, attempts=(odd,)))
    return unlogged(*log)


@settings(max_examples=200, deadline=None)
@given(st.lists(EACH, max_size=12))
def test_the_causes_dollars_and_tokens_add_up_to_what_was_lost(requests: Any) -> None:
    log = made(requests)
    memory, pico, tokens = Memory(), 0, 0
    for call in log:
        held, ours = memory.earlier(call)
        lost = losses(call, held, TierFacts(), ours=ours)
        memory.keep(call, held)
        number = sum(each.tokens for each in lost)
        assert number <= (call.cold_tokens or 0)
        assert all(each.tokens > 0 for each in lost)
        if lost:
            pico += lost_pico(call, number, None) or 0
        tokens += number
    found = diagnose(log)
    assert found.tokens == sum(tier.lost_tokens for tier in found.tiers) == tokens
    assert found.dollars * 10**12 == pico
    assert found.dollars == sum(each.dollars for each in found.findings)
