"""What holds of marks whatever is asked: the API's limits, and that nothing else changes."""

from hypothesis import given
from hypothesis import strategies as st

from cascade.tiers.breakpoints import MOST_MARKS, Breakpoints, marked
from cascade.types import ChatRequest

MARKS = st.sampled_from(
    [None, None, None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}]
)
TEXTS = st.sampled_from(["", " ", "short", "long " * 200])


def with_mark(thing, mark):
    return thing if mark is None else {**thing, "cache_control": mark}


PARTS = st.builds(with_mark, st.builds(lambda t: {"type": "text", "text": t}, TEXTS), MARKS)
CONTENTS = st.one_of(TEXTS, st.none(), st.lists(PARTS, max_size=3))
CALLS = st.lists(
    st.builds(with_mark, st.just({"id": "c", "type": "function", "function": {}}), MARKS),
    max_size=2,
)
MESSAGES = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "developer", "user", "assistant"]),
        CONTENTS,
    ),
    st.builds(lambda calls: {"role": "assistant", "content": None, "tool_calls": calls}, CALLS),
    st.builds(with_mark, st.just({"role": "tool", "tool_call_id": "c", "content": "3"}), MARKS),
)
TOOLS = st.lists(
    st.builds(with_mark, st.just({"type": "function", "function": {"name": "f"}}), MARKS),
    max_size=3,
)
RULES = st.builds(
    Breakpoints,
    minimum_tokens=st.sampled_from([0, 100]),
    ttl=st.sampled_from(["5m", "1h"]),
)


def marks(request):
    """Lifetimes in the order in which the provider reads the prompt."""
    found = []

    def look(value):
        if isinstance(value, dict):
            for name, item in value.items():
                if name != "cache_control":
                    look(item)
            if "cache_control" in value:
                found.append(value["cache_control"].get("ttl", "5m"))
        elif isinstance(value, list | tuple):
            for item in value:
                look(item)

    system = [m for m in request.messages if m["role"] in {"system", "developer"}]
    look(list(request.tools or ()))
    look(system)
    look([m for m in request.messages if m not in system])
    return found


def words(request):
    """The request as it is without marks, a text like its only part."""

    def bare(value):
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k != "cache_control"}
        return [bare(item) for item in value] if isinstance(value, list) else value

    messages = [bare(message) for message in request.messages]
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    return messages, bare(list(request.tools or ()))


def in_order(ttls):
    return ttls == sorted(ttls, key=["1h", "5m"].index)


@given(messages=st.lists(MESSAGES, min_size=1, max_size=8), tools=TOOLS, rule=RULES)
def test_marks_stay_within_the_apis_rules_and_change_no_word(messages, tools, rule):
    request = ChatRequest(id="r", messages=messages, tools=tools or None)
    theirs = marks(request)
    out = marked(request, rule)
    assert words(out) == words(request)
    assert len(marks(out)) <= max(MOST_MARKS, len(theirs))
    if in_order(theirs):
        assert in_order(marks(out))
    again = marked(out, rule)
    assert len(marks(again)) <= max(MOST_MARKS, len(theirs))
