import orjson
import pytest

from cascade.errors import RequestError
from serving.schemas import parse

SYSTEM = {"role": "system", "content": "be brief"}
FIRST = {"role": "user", "content": "hello"}
MORE = [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]


def read(headers=None, **body):
    body = {"model": "m", "messages": [SYSTEM, FIRST], **body}
    return parse(orjson.dumps(body), headers or {}, "id").request


def test_a_session_is_the_header_else_the_user_else_the_conversations_beginning():
    assert read({"x-cascade-session": "s"}, user="u").session == "s"
    assert read(user="u").session == "u"
    fallback = read().session
    assert len(fallback) == 24
    assert read(messages=[SYSTEM, FIRST, *MORE]).session == fallback


@pytest.mark.parametrize(
    ("headers", "messages"),
    [
        ({"x-cascade-tenant": "other"}, [SYSTEM, FIRST]),
        ({}, [{**SYSTEM, "content": "be long"}, FIRST]),
        ({}, [SYSTEM, {**FIRST, "content": "goodbye"}]),
    ],
    ids=["tenant", "system", "first ask"],
)
def test_another_tenant_system_prompt_or_first_ask_is_another_session(headers, messages):
    assert read(headers, messages=messages).session != read().session


def test_a_very_long_name_is_kept_as_its_hash():
    assert len(read(user="u" * 10_000).session) == 24
    assert read(user="u" * 10_000).session == read(user="u" * 10_000).session
    assert len(read({"x-cascade-tenant": "t" * 300}).tenant) == 24


def test_metadata_becomes_tags_and_still_goes_to_the_model():
    request = read(metadata={"team": "search", "n": 1})
    assert request.tags == {"team": "search"}
    assert request.params["metadata"] == {"team": "search", "n": 1}


def test_stream_options_are_ours_and_the_rest_is_the_models():
    call = parse(
        orjson.dumps(
            {
                "model": "m",
                "messages": [FIRST],
                "stream": True,
                "stream_options": {"include_usage": True, "other": 1},
                "temperature": 0.5,
            }
        ),
        {},
        "id",
    )
    assert (call.stream, call.include_usage) == (True, True)
    assert call.request.params == {"temperature": 0.5}


@pytest.mark.parametrize("content", ['"a\\u0000b"', "null", "[]", '[{"type": "x"}]'])
def test_odd_contents_are_read(content):
    body = f'{{"model": "m", "messages": [{{"role": "user", "content": {content}}}]}}'
    assert parse(body.encode(), {}, "id").request.session


@pytest.mark.parametrize("text", ['"\\ud800"', "1" * 400, "[" * 5000, "NaN"])
def test_what_no_model_could_be_sent_is_refused(text):
    body = f'{{"model": "m", "messages": [{{"role": "user", "content": {text}}}]}}'
    with pytest.raises(RequestError):
        parse(body.encode(), {}, "id")
