"""Where Anthropic's cache marks go, a test for each rule."""

from copy import deepcopy

import pytest

from cascade.tiers.breakpoints import MOST_MARKS, Breakpoints, marked, up_to_last_mark
from cascade.types import ChatRequest

FIVE, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
RULE = Breakpoints()
SYSTEM = {"role": "system", "content": "be brief"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3"}


def tool(name, **fields):
    return {"type": "function", "function": {"name": name, "parameters": {}}, **fields}


def user(content):
    return {"role": "user", "content": content}


def said(content, **fields):
    return {"role": "assistant", "content": content, **fields}


def text(words, **fields):
    return {"type": "text", "text": words, **fields}


def asked(*messages, tools=None, **params):
    return ChatRequest(id="r", messages=list(messages), tools=tools, params=params)


def places(request):
    """Every mark by where it is."""
    found = {}

    def look(value, path):
        if isinstance(value, dict):
            if "cache_control" in value:
                found[path] = value["cache_control"]
            for name, item in value.items():
                look(item, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                look(item, f"{path}{index}")

    look({"tools": list(request.tools or ()), "m": list(request.messages), "p": request.params}, "")
    return found


TALK = (SYSTEM, user("a"), said("b"), user("c"), said("d"), user("e"))


def test_marks_are_at_the_system_prompt_the_new_ask_the_end_of_the_history_and_the_last_tool():
    out = marked(asked(*TALK[:4], tools=[tool("x"), tool("y")]), RULE)
    assert places(out) == {
        "tools1": FIVE,
        "m0.content0": FIVE,
        "m2.content0": FIVE,
        "m3.content0": FIVE,
    }
    assert out.messages[0]["content"] == [text("be brief", cache_control=FIVE)]
    assert out.messages[1] == user("a")
    assert out.messages[3]["content"] == [text("c", cache_control=FIVE)]


def test_the_fourth_mark_is_where_the_request_before_ended():
    now = places(marked(asked(*TALK), RULE))
    before = places(marked(asked(*TALK[:4]), RULE))
    assert set(now) == {"m0.content0", "m3.content0", "m4.content0", "m5.content0"}
    assert set(before) == {"m0.content0", "m1.content0", "m2.content0", "m3.content0"}


def test_after_tool_results_the_request_before_is_found_whatever_the_tools_are():
    turn = (said(None, tool_calls=[CALL]), RESULT)
    first = marked(asked(SYSTEM, user("a"), *turn, tools=[tool("x")]), RULE)
    second = marked(asked(SYSTEM, user("a"), *turn, *turn, tools=[tool("x")]), RULE)
    assert set(places(first)) == {"tools0", "m0.content0", "m1.content0", "m3"}
    assert set(places(second)) == {"tools0", "m0.content0", "m3", "m5"}


def test_there_are_never_more_than_four():
    out = marked(asked(*TALK, tools=[tool("x")]), RULE)
    assert len(places(out)) == MOST_MARKS


def test_the_request_itself_is_not_changed():
    request = asked(*TALK, tools=[tool("x")])
    before = deepcopy(request)
    marked(request, RULE)
    assert request == before


def test_a_first_ask_alone_is_marked_if_the_model_would_keep_it():
    assert places(marked(asked(user("a document")), RULE)) == {"m0.content0": FIVE}
    short = asked(user("what is 2+2?"))
    assert marked(short, Breakpoints(minimum_tokens=100)) is short


def test_where_there_is_no_place_the_request_is_the_same():
    request = asked(user(""))
    assert marked(request, RULE) is request


def test_a_document_before_the_ask_is_history():
    assert places(marked(asked(user("a long text"), user("what is in it?")), RULE)) == {
        "m0.content0": FIVE,
        "m1.content0": FIVE,
    }


def test_all_leading_system_messages_are_one_prompt_and_a_later_one_ends_nothing():
    developer = {"role": "developer", "content": "and kind"}
    later = {"role": "system", "content": "it is noon"}
    out = marked(asked(SYSTEM, developer, user("a"), later, user("b")), RULE)
    assert set(places(out)) == {"m1.content0", "m2.content0", "m4.content0"}


def test_what_follows_tool_results_goes_on_from_them_so_they_are_marked():
    out = marked(asked(SYSTEM, user("a"), said(None, tool_calls=[CALL]), RESULT), RULE)
    assert set(places(out)) == {"m0.content0", "m1.content0", "m3"}
    assert out.messages[3] == {**RESULT, "cache_control": FIVE}


def test_an_answer_with_tool_calls_is_marked_at_the_last_of_them():
    calls = [CALL, {**CALL, "id": "c2"}]
    out = marked(asked(user("a"), said("let me see", tool_calls=calls), user("go on")), RULE)
    assert set(places(out)) == {"m0.content0", "m1.tool_calls1", "m2.content0"}
    assert out.messages[1]["content"] == "let me see"


@pytest.mark.parametrize(
    "answer",
    [
        said(""),
        said("  \n"),
        said(None),
        said([]),
        said([text("")]),
        said([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        said("", tool_calls=[{**CALL, "id": "srvtoolu_1"}]),
        said("", tool_calls="none"),
        said(3),
        said([{"type": ["text"]}]),
    ],
)
def test_what_cannot_be_marked_leaves_the_mark_to_what_is_before_it(answer):
    found = places(marked(asked(user("a"), answer, user("b")), RULE))
    assert found == {"m0.content0": FIVE, "m2.content0": FIVE}


def test_of_several_parts_the_last_one_that_can_be_marked_is():
    parts = [text("see"), {"type": "image_url", "image_url": {"url": "data:,"}}, text("")]
    out = marked(asked(user(parts)), RULE)
    assert places(out) == {"m0.content1": FIVE}
    assert len(out.messages[0]["content"]) == 3


@pytest.mark.parametrize(
    "last",
    [
        tool("y", defer_loading=True),
        {"type": "function", "function": {"name": "y", "defer_loading": True}},
        {"type": "tool_search_tool_regex_20251119", "name": "find"},
    ],
)
def test_a_tool_that_is_not_in_the_prompt_is_not_marked(last):
    assert places(marked(asked(user(""), tools=[tool("x"), last]), RULE)) == {"tools0": FIVE}
    alone = asked(user(""), tools=[last])
    assert marked(alone, RULE) is alone


def test_a_prefix_below_the_models_minimum_is_not_marked():
    rule = Breakpoints(minimum_tokens=100)
    long, short = "x" * 4 * 100, "x" * 4 * 40
    first = asked({"role": "system", "content": short}, user("a"), said("b"), user("c"))
    assert marked(first, rule) is first
    grown = asked(
        {"role": "system", "content": short}, user(short), said(short), user("c"), tools=None
    )
    assert set(places(marked(grown, rule))) == {"m2.content0", "m3.content0"}
    full = asked({"role": "system", "content": long}, user("a"))
    assert set(places(marked(full, rule))) == {"m0.content0", "m1.content0"}


def test_tools_count_for_the_prefix_of_the_system_prompt():
    rule = Breakpoints(minimum_tokens=100)
    request = asked(SYSTEM, user(""), tools=[tool("x", description="y" * 345)])
    assert set(places(marked(request, rule))) == {"m0.content0"}


def test_where_more_bytes_make_a_token_a_longer_prefix_is_wanted():
    request = asked({"role": "system", "content": "x" * 450}, user("a"))
    assert places(marked(request, Breakpoints(minimum_tokens=100)))
    assert marked(request, Breakpoints(minimum_tokens=100, bytes_per_token=5.0)) is request


def test_length_is_in_bytes_since_a_korean_syllable_is_more_of_a_token_than_a_letter():
    rule = Breakpoints(minimum_tokens=100)
    assert places(marked(asked({"role": "system", "content": "가" * 140}, user("a")), rule))
    plain = asked({"role": "system", "content": "x" * 140}, user("a"))
    assert marked(plain, rule) is plain


def test_all_marks_keep_for_the_same_time():
    out = marked(asked(*TALK[:4], tools=[tool("x")]), Breakpoints(ttl="1h"))
    assert [*places(out).values()] == [HOUR] * MOST_MARKS


def test_the_clients_marks_stay_and_count():
    theirs = [
        user([text("a", cache_control=FIVE), text("b", cache_control=FIVE)]),
        said([text("c", cache_control=HOUR)]),
        user("d"),
    ]
    out = marked(asked(SYSTEM, *theirs, tools=[tool("x")]), RULE)
    found = places(out)
    assert len(found) == MOST_MARKS
    assert found["m1.content0"] == FIVE
    assert found["m2.content0"] == HOUR
    assert "m0.content0" in found


def test_where_the_client_used_all_four_nothing_is_added():
    parts = [text(str(i), cache_control=FIVE) for i in range(4)]
    request = asked(SYSTEM, user(parts), user("d"), tools=[tool("x")])
    assert marked(request, RULE) is request


def test_a_place_that_the_client_marked_is_not_marked_again():
    request = asked({"role": "system", "content": [text("be", cache_control=HOUR)]}, user(""))
    assert marked(request, RULE) is request
    request = asked(user([text("a", cache_control=FIVE)]))
    assert marked(request, RULE) is request
    function = {"type": "function", "function": {"name": "x", "cache_control": HOUR}}
    request = asked(user(""), tools=[function])
    assert marked(request, RULE) is request


def test_nothing_of_an_hour_comes_after_what_the_client_keeps_for_five_minutes():
    theirs = tool("x", cache_control=FIVE)
    out = marked(asked(*TALK[:4], tools=[theirs]), Breakpoints(ttl="1h"))
    assert [*places(out).values()] == [FIVE] * MOST_MARKS


def test_what_comes_before_a_clients_mark_of_an_hour_is_kept_as_long():
    theirs = user([text("a", cache_control=HOUR)])
    out = marked(asked(SYSTEM, theirs, said("b"), user("c"), tools=[tool("x")]), RULE)
    assert places(out) == {
        "m0.content0": HOUR,
        "m1.content0": HOUR,
        "m2.content0": FIVE,
        "m3.content0": FIVE,
    }


def test_a_mark_in_a_tools_result_or_on_a_call_is_the_clients_too():
    result = {**RESULT, "content": [text("3", cache_control=FIVE)]}
    call = said(None, tool_calls=[{**CALL, "cache_control": FIVE}])
    out = marked(asked(SYSTEM, user("a"), call, result, user("b")), RULE)
    assert set(places(out)) == {"m0.content0", "m2.tool_calls0", "m3.content0", "m4.content0"}


def test_the_clients_mark_on_the_whole_request_counts_and_has_the_last_message():
    request = asked(SYSTEM, user("a"), said(None, tool_calls=[CALL]), RESULT, cache_control=HOUR)
    assert places(marked(request, RULE)) == {"m0.content0": HOUR, "m1.content0": HOUR, "p": HOUR}


def test_the_end_of_the_request_before_is_marked_as_it_was_then():
    turns = [marked(asked(*TALK[:n]), RULE) for n in (4, 6)]
    assert turns[0].messages[3] == turns[1].messages[3]
    assert turns[0].messages[0] == turns[1].messages[0]


def test_a_prompt_ends_for_the_cache_behind_its_last_mark():
    mark = {"cache_control": {"type": "ephemeral"}}
    tools = [{"type": "function", "function": {"name": name}} for name in "ab"]
    messages = [{"role": role, "content": role} for role in ("system", "user", "assistant", "user")]

    def kept(tool=None, message=None, **params):
        asked = ChatRequest(
            id="r",
            messages=[{**m, **(mark if i == message else {})} for i, m in enumerate(messages)],
            tools=[{**t, **(mark if i == tool else {})} for i, t in enumerate(tools)],
            params=params,
        )
        found = up_to_last_mark(asked)
        return None if found is None else (len(found.tools), len(found.messages))

    assert kept() is None
    assert kept(tool=0) == (1, 0)
    assert kept(message=0) == (2, 1)
    assert kept(tool=1, message=2) == (2, 3)
    assert kept(tool=1, **mark) == (2, 4)
