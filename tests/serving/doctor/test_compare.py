from collections.abc import Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.doctor.calls import Prompt, prompt_of
from serving.doctor.compare import compare
from tests.serving.doctor.logs import SYSTEM, TOOLS, fingerprint, prompt

TALK = ("u1", "a:1", "u2", "a:2", "u3", "a:3", "u4")
STABLE = 1500
DATED = "It is <date {}>."
NAMED = "Request <id {}>."
BOTH = DATED + NAMED


def test_a_prompt_that_goes_on_is_common_as_a_whole() -> None:
    found = compare(prompt(*TALK[:5]), prompt(*TALK))
    assert found.cause is None
    assert (found.common, found.possible, found.turns) == (2500, 2500, 5)


def test_going_back_to_an_earlier_turn_loses_nothing() -> None:
    found = compare(prompt(*TALK), prompt(*TALK[:3]))
    assert found.cause is None
    assert found.common == found.possible == STABLE + 600


def test_another_last_question_is_no_change_of_what_was_sent() -> None:
    found = compare(prompt("u1", "a:1", "u2"), prompt("u1", "a:1", "u2 again"))
    assert found.cause is None
    assert found.common == found.possible == STABLE + 400


def test_another_conversation_shares_what_is_before_it() -> None:
    found = compare(prompt(*TALK), prompt("something else"))
    assert (found.cause, found.related) == (None, False)
    assert found.common == found.possible == STABLE


SEGMENTS = [
    ("tools_order", {"tools": TOOLS[::-1]}, {}, 0),
    ("tools_changed", {"tools": (*TOOLS[:4], "draw")}, {}, 400),
    ("tools_added", {}, {"tools": ()}, 0),
    ("tools_removed", {"tools": ()}, {}, 0),
    (
        "tools_dates",
        {"tools": (*TOOLS[:4], DATED.format(2))},
        {"tools": (*TOOLS[:4], DATED.format(1))},
        400,
    ),
    ("system_dates", {"system": DATED.format("10:01")}, {"system": DATED.format("10:00")}, 500),
    ("system_ids", {"system": NAMED.format("f00")}, {"system": NAMED.format("ba5")}, 500),
    (
        "system_mixed",
        {"system": DATED.format(2) + NAMED.format(2)},
        {"system": DATED.format(1) + NAMED.format(1)},
        500,
    ),
    ("system_changed", {"system": "You help a lot."}, {}, 500),
    ("pack_order", {"pack": ("b", "a")}, {"pack": ("a", "b")}, 1500),
    ("pack_changed", {"pack": ("a", "c", "d")}, {"pack": ("a", "b")}, 1800),
]


@pytest.mark.parametrize(("cause", "after", "before", "common"), SEGMENTS)
def test_the_first_segment_that_changed_is_the_cause(
    cause: str, after: dict[str, Sequence[str]], before: dict[str, Sequence[str]], common: int
) -> None:
    old, new = prompt("u1", **before), prompt("u1", "a:1", "u2", **after)
    found = compare(old, new)
    assert found.cause is not None
    assert found.cause.key == cause
    assert found.common == common
    assert found.possible == min(old.tokens, new.tokens)


def test_of_several_changes_the_first_one_counts() -> None:
    old = prompt("u1", system=DATED.format(1), pack=("a", "b"))
    new = prompt("u1", "a:1", "u2", system=DATED.format(2), pack=("b", "a"))
    assert key(old, new) == "system_dates"


def test_other_keys_within_the_same_tools_are_told_from_another_order() -> None:
    old, new = prompt("u1"), prompt("u1", "a:1", "u2")
    tools = old.segments["tools"]
    rewritten = type(tools)(
        name="tools",
        tokens=500,
        raw="other",
        masked={"order": tools.masked.get("order", tools.raw)},
        parts=["other", *tools.parts[1:]],
    )
    changed = new._replace(
        segments={**new.segments, "tools": rewritten}, stable=("other", *new.stable[1:])
    )
    assert key(old, changed) == "tools_keys"


CONVERSATIONS = [
    ("cut", ("a:2", "u3", "a:3", "u4", "a:4", "u5"), "7 messages are now 4", 0),
    ("cut", ("u1", "a:3", "u4", "a:4", "u5"), "7 messages are now 3", 1),
    ("rewritten", ("summary", "u4", "a:4", "u5"), "7 messages are now 2", 0),
    ("rewritten", ("u1", "summary", "a:3", "u4", "a:4", "u5"), "7 messages are now 4", 1),
    ("rewritten", ("summary", "a:fine", "u5"), "7 messages are now 2", 0),
    ("edited", ("u1", "a:1 shortened", *TALK[2:], "a:4", "u5"), "message 2 of 9", 1),
    ("latest", (*TALK[:-1], "u4 without its reminder", "a:4", "u5"), "", 6),
    ("edited", ("u1", "x", "a:1", "y", "z", "a:2", "t", "a:9", "u5"), "message 2 of 9", 1),
]


@pytest.mark.parametrize(("cause", "turns", "detail", "same"), CONVERSATIONS)
def test_what_was_done_to_the_history_is_told(
    cause: str, turns: Sequence[str], detail: str, same: int
) -> None:
    old, new = prompt(*TALK), prompt(*turns)
    found = compare(old, new)
    assert found.cause is not None
    assert (found.cause.key, found.detail) == (cause, detail)
    assert (found.turns, found.common) == (same, STABLE + 200 * same)


def test_a_date_in_the_history_is_told_where_it_is_as_long_as_before() -> None:
    old = prompt("u1", "seen <date 1>", "a:1", "u2")
    new = prompt("u1", "seen <date 2>", "a:1", "u2")
    assert key(old, new) == "history_dates"


def test_a_side_call_has_another_system_prompt_and_another_conversation() -> None:
    aside = prompt("summarise this", system="You write titles.", tools=())
    assert key(prompt(*TALK), aside) == "side_call"
    assert key(prompt(*TALK), prompt(*TALK, system="You write titles.")) == "system_changed"


def test_other_conversations_lose_at_most_their_stable_part_to_a_date() -> None:
    found = compare(
        prompt(*TALK, system=DATED.format(1)), prompt("elsewhere", system=DATED.format(2))
    )
    assert found.cause is not None
    assert (found.cause.key, found.common, found.possible) == ("system_dates", 500, STABLE)


def test_other_documents_for_another_question_are_no_loss() -> None:
    found = compare(prompt("q1", pack=("a", "b")), prompt("q2", pack=("c", "d")))
    assert (found.cause, found.common, found.possible) == (None, STABLE, STABLE)


LONG = [f"{'a:' if n % 2 else 'u'}{n}" for n in range(1000)]


def test_of_a_long_history_the_log_has_the_end_and_compares_that() -> None:
    old, new = logged(LONG), logged([*LONG, "u next"])
    assert (old.skipped, old.messages, new.messages) == (1000 - KEPT, 1000, 1001)
    assert compare(old, new).cause is None
    assert compare(old, new).common == old.tokens
    longer = logged([*LONG, "u next", "a:next", "u last"])
    assert compare(new, longer).cause is None
    assert key(old, logged([*LONG[:900], "u other", *LONG[901:], "u next"])) == "edited"


def test_a_long_history_that_was_cut_is_found_by_its_end() -> None:
    found = compare(logged(LONG), logged([*LONG[-40:], "u next"]))
    assert found.cause is not None
    assert (found.cause.key, found.detail) == ("cut", "1000 messages are now 40")
    still_long = compare(logged(LONG), logged([*LONG[-400:], "u next"]))
    assert still_long.cause is not None
    assert (still_long.cause.key, still_long.detail) == ("cut", "1000 messages are now 400")


TURNS = st.lists(st.sampled_from(["u1", "u2", "a:1", "a:2"]), max_size=9)
WAYS = st.sampled_from([{}, {"tools": ()}, {"system": "B"}, {"pack": ("x", "y")}, {"pack": ("y",)}])


ONE = st.tuples(TURNS, st.integers(1, 9), WAYS)


@given(ONE, ONE)
def test_whatever_two_prompts_are_they_share_no_more_than_they_could(
    old: tuple[list[str], int, dict[str, Sequence[str]]],
    new: tuple[list[str], int, dict[str, Sequence[str]]],
) -> None:
    before, after = (logged(turns, kept, **way) for turns, kept, way in (old, new))
    found = compare(before, after)
    assert 0 <= found.common <= found.possible <= min(before.tokens, after.tokens)
    assert 0 <= found.turns <= min(before.messages, after.messages)
    assert compare(after, after).goes_on


KEPT = 256


def logged(turns: Sequence[str], kept: int = KEPT, **parts: Sequence[str]) -> Prompt:
    """A conversation as the log has it: of a segment with more parts the last ones."""
    segments = []
    for each in fingerprint(turns, **parts).segments:
        hashes, missing = list(each.parts), len(each.parts) - kept
        if missing > 0:
            hashes = [f"+{missing}", *hashes[missing:]]
        segments.append({**asdict(each), "parts": hashes})
    made = prompt_of(segments)
    return made or Prompt(
        segments={},
        stable=("", "", ""),
        stable_tokens=0,
        turns=(),
        skipped=0,
        history=0,
        tokens=0,
    )


def key(before: Prompt, after: Prompt) -> str | None:
    cause = compare(before, after).cause
    return cause.key if cause else None


def test_made_up_prompts_have_the_tokens_that_these_tests_count_with() -> None:
    assert prompt("u1", system=SYSTEM).tokens == STABLE + 200
