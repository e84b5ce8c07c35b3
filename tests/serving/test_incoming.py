"""Bodies and headers as they come over the wire, whole or not."""

import asyncio
import hashlib

import aiohttp
import orjson
import pytest
from fastapi import Request

from cascade.errors import RequestTimeoutError
from serving.incoming import body_of, header_texts, key_id
from tests.apis import APIS, app_of, ask
from tests.services import snapshot


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (b"application/json", 200),
        (b"Application/JSON; charset=utf-8", 200),
        (b"application/problem+json", 200),
        (b"application/octet-stream", 200),
        (b"", 200),
        (b"text/plain", 415),
        (b"application/x-www-form-urlencoded", 415),
        (b"multipart/form-data; boundary=x", 415),
    ],
)
async def test_a_body_that_is_said_to_be_something_else_than_json_is_a_415(api, kind, status):
    app, _ = app_of(snapshot())
    answer = await ask(app, APIS[api].path, APIS[api].body(), json_type=kind)
    assert answer.status == status
    if status == 415:
        assert answer.field == "content-type"


@pytest.mark.parametrize("api", APIS)
async def test_a_compressed_body_is_a_415(api):
    app, _ = app_of(snapshot())
    answer = await ask(app, APIS[api].path, b"\x1f\x8b", [(b"content-encoding", b"gzip")])
    assert (answer.status, answer.field) == (415, "content-encoding")


@pytest.mark.parametrize("api", APIS)
async def test_a_method_that_is_not_there_is_a_405(api):
    app, _ = app_of(snapshot())
    answer = await ask(app, APIS[api].path, b"", method="PUT")
    assert answer.status == 405
    assert answer.json["error"]["message"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", ["session", "tenant", "pin", "max-cost-usd"])
async def test_a_header_for_cascade_that_is_not_utf8_is_named(api, name):
    app, _ = app_of(snapshot())
    header = f"x-cascade-{name}"
    answer = await ask(app, APIS[api].path, APIS[api].body(), [(header.encode(), b"\xff\xfe")])
    assert (answer.status, answer.field) == (400, header)


@pytest.mark.parametrize("api", APIS)
async def test_other_headers_may_hold_any_bytes(api):
    app, _ = app_of(snapshot())
    headers = [(b"user-agent", b"\xff"), (b"x-cascade-session", "größe".encode())]
    assert (await ask(app, APIS[api].path, APIS[api].body(), headers)).status == 200


def test_of_several_headers_with_one_name_the_first_counts():
    raw = [
        (b"x-cascade-pin", "größe".encode()),
        (b"x-cascade-pin", b"b"),
        (b"content-type", b"application/json"),
        (b"via", b"\xe9"),
    ]
    assert header_texts(Request({"type": "http", "headers": raw})) == {
        "x-cascade-pin": "größe",
        "content-type": "application/json",
    }


def test_of_a_trace_several_headers_are_one_and_nothing_unreadable_is_an_error():
    raw = [
        (b"traceparent", b"\xe9"),
        (b"tracestate", b"a=1,b=\xe9"),
        (b"traceparent", b"00-second"),
        (b"tracestate", b"c=3"),
    ]
    assert header_texts(Request({"type": "http", "headers": raw})) == {
        "traceparent": "\xe9",
        "tracestate": "a=1,b=\xe9,c=3",
    }


async def test_a_body_that_stops_coming_in_is_a_408_that_says_how_much_came():
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        return pieces.pop() if pieces else await asyncio.Event().wait()

    http = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(RequestTimeoutError, match="stopped after 1 bytes") as caught:
        await body_of(http, {}, 100, silence_seconds=0.05)
    assert (caught.value.status, caught.value.param) == (408, "content-length")


async def test_a_slow_body_is_taken_as_long_as_something_comes():
    pieces = [b"a", b"b", b"c", b"d", b""]

    async def receive():
        await asyncio.sleep(0.05)
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    http = Request({"type": "http", "headers": []}, receive)
    assert await body_of(http, {}, 100, silence_seconds=0.15) == b"abcd"


async def raw(url, *pieces):
    """What a server answers to these bytes, up to the end of the connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(5):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def head(api, *lines):
    first = [f"POST {api.path} HTTP/1.1", "host: x", "content-type: application/json"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


@pytest.mark.parametrize("api", APIS)
async def test_a_content_length_below_the_body_cuts_it_which_is_a_400(serve, api):
    service = await serve()
    body = orjson.dumps(APIS[api].body())
    lines = (f"content-length: {len(body) - 5}", "connection: close")
    answer = await raw(service.url, head(APIS[api], *lines), body)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the body is not JSON" in answer


@pytest.mark.parametrize("api", APIS)
async def test_a_client_that_leaves_before_its_body_is_whole_harms_nobody(serve, api):
    service = await serve()
    host, port = service.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(head(APIS[api], "content-length: 1000") + b"{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with aiohttp.ClientSession() as session:
        url = f"{service.url}{APIS[api].path}"
        async with session.post(url, json=APIS[api].body()) as response:
            assert response.status == 200
    assert len(service.log.results) == 1


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("lengths", [("x",), ("-1",), ("5", "6")])
async def test_a_content_length_that_is_none_is_a_400(serve, api, lengths):
    service = await serve()
    lines = [f"content-length: {each}" for each in lengths]
    answer = await raw(service.url, head(APIS[api], *lines), b"{}")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("api", APIS)
async def test_a_chunked_body_is_put_together(serve, api):
    service = await serve()
    body = orjson.dumps(APIS[api].body())
    chunks = [
        f"{len(body[i : i + 7]):x}\r\n".encode() + body[i : i + 7] + b"\r\n"
        for i in range(0, len(body), 7)
    ]
    lines = ("transfer-encoding: chunked", "connection: close")
    answer = await raw(service.url, head(APIS[api], *lines), *chunks, b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("api", APIS)
async def test_a_chunked_body_with_a_wrong_size_is_a_400(serve, api):
    service = await serve()
    answer = await raw(service.url, head(APIS[api], "transfer-encoding: chunked"), b"zz\r\n{}\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("api", APIS)
async def test_a_body_over_the_limit_is_a_413_however_it_comes(api):
    app, _ = app_of(snapshot(), max_body_bytes=1000)
    answer = await ask(app, APIS[api].path, APIS[api].body(x="y" * 1000))
    assert answer.status == 413


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ([(b"authorization", b"Bearer sk-1")], b"sk-1"),
        ([(b"authorization", b"bearer  sk-1 ")], b"sk-1"),
        ([(b"authorization", b"Basic dTpw")], b"Basic dTpw"),
        ([(b"x-api-key", b"sk-1")], b"sk-1"),
        ([(b"x-other", b"sk-2"), (b"x-api-key", b"\xff")], b"\xff"),
    ],
)
def test_a_client_is_told_by_a_hash_of_its_key(headers, key):
    expected = hashlib.blake2b(key, digest_size=6).hexdigest()
    assert key_id(Request({"type": "http", "headers": headers})) == expected


@pytest.mark.parametrize("value", [None, b"", b"Bearer", b"Bearer  "])
def test_a_client_without_a_key_has_none(value):
    headers = [] if value is None else [(b"authorization", value)]
    assert key_id(Request({"type": "http", "headers": headers})) == ""


@pytest.mark.parametrize("api", APIS)
async def test_the_audit_log_gets_the_hash_and_never_the_key(api):
    app, log = app_of(snapshot())
    await ask(app, APIS[api].path, APIS[api].body(), headers=[(b"authorization", b"Bearer sk-1")])
    (result,) = log.results
    assert len(result.request.key_id) == 12
    assert "sk-1" not in repr(result)
