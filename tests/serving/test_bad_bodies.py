"""Bodies that are wrong, whichever API they were sent to: a 4xx that names the field, no crash."""

import asyncio
from dataclasses import replace

import orjson
import pytest

from serving.messages.body import Body as MessagesBody
from serving.responses.body import Body as ResponsesBody
from serving.schemas import ChatBody
from tests.apis import APIS, app_of, ask
from tests.services import snapshot

SHAPES = {"chat": ChatBody, "messages": MessagesBody, "responses": ResponsesBody}
FIELDS = [(api, field) for api, shape in SHAPES.items() for field in shape.model_fields]
WRONG = [True, 5, 5.5, "x", [5], {"x": 1}]
"""One of each type: hardly any field takes more than two of them."""


@pytest.mark.parametrize(("api", "field"), FIELDS)
async def test_every_field_names_itself_when_its_type_is_wrong(api, field):
    app, _ = app_of(snapshot())
    named = 0
    for value in WRONG:
        answer = await ask(app, APIS[api].path, APIS[api].body(**{field: value}))
        if answer.status == 200:
            continue
        assert 400 <= answer.status < 500, value
        assert answer.status == 404 or answer.field.startswith(field), value
        named += 1
    assert named >= 3


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"null",
        b"[1]",
        b'"x"',
        b"5",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"model": "\xff"}',
        b'{"model": "\\ud800"}',
        b'{"model": NaN}',
        b'{"model": -Infinity}',
        b'{"model": 1e999}',
        b'{"model": ' + b"9" * 5000 + b"}",
        b'{"model": "cascade",}',
        b"{'model': 'cascade'}",
        '{"model": "cascade"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_a_body_that_is_no_json_object_is_a_400(api, body):
    app, log = app_of(snapshot())
    answer = await ask(app, APIS[api].path, body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert "body" in answer.json["error"]["message"]
    assert not log.results


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("text", [b'"\\udc00\\ud800"', b'"\xc3\x28"', b'"a\nb"'])
async def test_text_that_no_model_could_be_sent_is_a_400(api, text):
    app, _ = app_of(snapshot())
    body = orjson.dumps(APIS[api].body(x="MARK")).replace(b'"MARK"', text)
    assert (await ask(app, APIS[api].path, body)).status == 400


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("depth", [50, 120, 130, 200, 250, 260, 400, 1000])
async def test_nesting_is_taken_or_refused_and_never_breaks_anything(api, depth):
    app, _ = app_of(snapshot())
    mark = orjson.dumps(APIS[api].body(x="MARK"))
    body = mark.replace(b'"MARK"', b"[" * depth + b"]" * depth)
    answer = await ask(app, APIS[api].path, body)
    if depth < 200:
        assert answer.status == 200
    if depth > 255 or answer.status != 200:
        assert answer.status == 400
        assert "nested too deeply" in answer.json["error"]["message"]


@pytest.mark.parametrize("api", APIS)
async def test_of_a_key_that_comes_twice_the_last_counts(api):
    app, log = app_of(snapshot())
    body = orjson.dumps(APIS[api].body()).removesuffix(b"}") + b',"model":"small","model":"large"}'
    assert (await ask(app, APIS[api].path, body)).status == 200
    assert log.results[0].request.model == "large"


@pytest.mark.parametrize("api", APIS)
async def test_an_unknown_model_is_a_404_that_lists_what_there_is(api):
    app, _ = app_of(snapshot())
    answer = await ask(app, APIS[api].path, APIS[api].body(model="gpt-9"))
    assert answer.status == 404
    assert "auto, cascade, always-small, small, large" in answer.json["error"]["message"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("value", [-1, 0, 2**63, 2**64, 10**30])
async def test_a_limit_that_cannot_be_one_is_named_and_a_huge_one_is_taken(api, value):
    app, _ = app_of(snapshot())
    field = "max_output_tokens" if api == "responses" else "max_tokens"
    body = orjson.dumps(APIS[api].body(**{field: 0})).replace(
        b'"%s":0' % field.encode(), b'"%s":%d' % (field.encode(), value)
    )
    answer = await ask(app, APIS[api].path, body)
    if value == 2**63:
        assert answer.status == 200
    else:
        assert (answer.status, answer.field) == (400, field)


@pytest.mark.parametrize("api", APIS)
async def test_five_hundred_turns_are_answered(api):
    app, log = app_of(snapshot())
    body = APIS[api].body(**APIS[api].asking("what is 2+2?", turns=500))
    async with asyncio.timeout(10):
        answer = await ask(app, APIS[api].path, body)
    assert answer.status == 200
    assert len(log.results[0].request.messages) == 500


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("text", ["one more word ", "x", "漢"])
async def test_ten_megabytes_are_answered_or_refused_by_the_window(api, text):
    shot = snapshot()
    app, _ = app_of(shot)
    long = text * (10_000_000 // len(text.encode()))
    body = orjson.dumps(APIS[api].body(**APIS[api].asking(long)))
    async with asyncio.timeout(20):
        assert (await ask(app, APIS[api].path, body)).status == 200
        for name in ("small", "large"):
            shot.tiers[name] = replace(shot.tiers[name], context_tokens=8192)
        answer = await ask(app, APIS[api].path, body)
    assert answer.status == 400
    assert "window" in answer.json["error"]["message"]
