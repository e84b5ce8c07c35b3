"""What is classified: a table of conversations of our own, and what holds for any."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.errors import ConfigError
from classifiers.budget import cut, tokens
from classifiers.text import DEFAULT, Asked, Extraction, asked

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "conversations.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def conversation(row):
    """The messages of a row; a long content is written down as what it repeats."""
    return [{**m, "content": written_out(m["content"])} for m in row["messages"]]


def written_out(content):
    if not isinstance(content, dict):
        return content
    return content["before"] + content["repeat"] * content["times"] + content["then"]


def holds(found, expected):
    """Whether a text is as expected: the text itself, or how it begins and ends when it is cut."""
    if isinstance(expected, str):
        return found == expected
    return found.startswith(expected[0]) and found.endswith(expected[1]) and "\u2026" in found


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_of_a_conversation_this_is_classified(row):
    found = asked(conversation(row))
    assert holds(found.text, row["ask"]), found.text
    assert holds(found.context, row.get("context", "")), found.context
    assert holds(found.system, row.get("system", "")), found.system
    assert found.refers == row.get("refers", False)
    assert found.images == row.get("images", 0)


def test_the_table_has_forty_conversations_and_each_says_something_else():
    assert len(ROWS) >= 40
    assert len({row["name"] for row in ROWS}) == len(ROWS)


def test_a_short_ask_inherits_the_length_of_what_it_refers_to():
    hard = {"role": "user", "content": "Refactor the billing module. " * 20}
    went = [hard, {"role": "assistant", "content": "Done."}]
    assert asked([*went, {"role": "user", "content": "commit it"}]).tokens > asked([hard]).tokens
    assert asked([*went, {"role": "user", "content": "What is 2 + 2 in binary?"}]).tokens < 10


def test_an_ask_that_stands_on_its_own_keeps_two_thirds_of_the_text():
    before = [
        {"role": "user", "content": "word " * 400},
        {"role": "assistant", "content": "x " * 99},
    ]
    for words in (20, 60, 200, 2000):
        found = asked([*before, {"role": "user", "content": "distinct question " * words}])
        assert tokens(found.context) <= tokens(found.text) / 2 + 1
    assert found.context


def test_what_is_embedded_has_the_ask_in_front():
    found = Asked(text="ask", context="context", system="system")
    assert found.whole == "ask\n\ncontext\n\nsystem"
    assert found.said == "ask\n\ncontext"


def test_markers_can_be_configured():
    message = {"role": "user", "content": "<note>from the proxy</note>Sum it up in a line."}
    ours = Extraction.of({"markers": ["note"]}, "text")
    assert asked([message], ours).text == "Sum it up in a line."
    assert "proxy" in asked([message]).text


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"ask_token": 3}, "text.ask_token"),
        ({"ask_tokens": -1}, "text.ask_tokens"),
        ({"turns": True}, "text.turns"),
        ({"system_tokens": 2.5}, "text.system_tokens"),
        ({"markers": "note"}, "text.markers"),
        ({"notices": [1]}, "text.notices"),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(given, key):
    with pytest.raises(ConfigError) as caught:
        Extraction.of(given, "text")
    assert caught.value.param == key


def test_options_that_are_not_given_are_the_defaults():
    assert Extraction.of(None, "text") == DEFAULT
    assert Extraction.of({"turns": 2}, "text", Extraction(ask_tokens=9)) == Extraction(
        ask_tokens=9, turns=2
    )


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
TAGS = st.sampled_from(
    ["<system-reminder>", "</system-reminder>", "<user_query>", "</user_query>", "```", "yes", "네"]
)
TEXTS = st.text(max_size=40) | st.lists(TAGS | st.text(max_size=4), max_size=30).map("".join)
JSONS = st.recursive(
    LEAVES | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "role", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool", 7, None])
MESSAGES = st.lists(
    st.fixed_dictionaries({}, optional={"role": ROLES, "content": TEXTS | JSONS}) | JSONS,
    max_size=8,
)


@given(MESSAGES)
@settings(max_examples=300, deadline=None)
def test_any_messages_give_a_bounded_text_and_always_the_same(messages):
    found = asked(messages)
    most = DEFAULT.ask_tokens + DEFAULT.context_tokens + DEFAULT.system_tokens
    assert tokens(found.whole) <= most + 8
    assert found == asked(messages)


@given(st.text(max_size=400), st.integers(0, 60), st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]))
@settings(max_examples=300, deadline=None)
def test_a_text_is_cut_to_about_its_budget_and_one_that_fits_is_left_alone(text, most, head):
    found = cut(text, most, head=head)
    assert tokens(found) <= most + 2
    if most > 0 and tokens(text) <= most:
        assert found == text


def test_a_budget_of_nothing_leaves_nothing():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    none = Extraction(ask_tokens=0, context_tokens=0, system_tokens=0)
    assert asked(messages, none).whole == ""


def test_a_korean_syllable_is_a_token_and_so_are_four_letters():
    assert tokens("가나다라") == 4.0
    assert tokens("abcdefgh") == 2.0
    assert tokens("가" * 50_000) == 50_000.0


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000,
        "<" * 300_000,
        "</" * 150_000,
        "<system-reminder>" * 18_000,
        "<system-reminder>a</system-reminder>" * 8_000,
        "```" * 100_000,
        "다시 " * 100_000,
        " " * 300_000,
        "\ud800" * 300_000,
    ],
    ids=["x", "<", "</", "opened", "blocks", "fences", "korean", "spaces", "surrogates"],
)
def test_three_hundred_thousand_characters_take_milliseconds(text):
    messages = [{"role": "user", "content": text}, {"role": "user", "content": text}]
    seconds = min(timed(messages) for _ in range(3))
    assert seconds < 0.05  # about 2 ms when nothing else runs; a quadratic step takes minutes


def timed(messages):
    began = time.perf_counter()
    asked(messages)
    return time.perf_counter() - began
