"""Repetitions of a request get its answer and are not paid for again."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import anthropic
import openai
import pytest

from cascade.backends.scripted import Script
from serving.recordings import RecordingLimits, Recordings
from serving.store.database import engine_for
from serving.store.sink import SqlAuditSink
from tests.chats import ASK, client
from tests.databases import database, postgres, template
from tests.engines import FixedJudge
from tests.gates import gated
from tests.services import running, snapshot

__all__ = ["database", "postgres", "template"]

REPLAY = "x-cascade-idempotent-replay"
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
BODIES = {
    CHAT: {"model": "always-small", "messages": ASK},
    MESSAGES: {"model": "always-small", "max_tokens": 9, "messages": ASK},
    RESPONSES: {"model": "always-small", "input": "what is 2+2?"},
}


async def post(service, path=CHAT, key="k1", headers=None, **fields):
    """Status, headers and the body's bytes."""
    asked = {**BODIES[path], **fields}
    keyed = {"idempotency-key": key} if key is not None else {}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{service.url}{path}", json=asked, headers={**keyed, **(headers or {})}
        ) as response,
    ):
        return response.status, response.headers, await response.read()


@asynccontextmanager
async def streaming(service):
    """A streamed answer that is left at the end, however much of it was read."""
    async with aiohttp.ClientSession() as session:
        yield await session.post(
            f"{service.url}{CHAT}",
            json={**BODIES[CHAT], "stream": True},
            headers={"idempotency-key": "k1"},
        )


class Watched(Recordings):
    """Counts the requests with a key, and says when a repetition has found its recording."""

    def __init__(self, limits=None):
        super().__init__(limits)
        self.asked = 0
        self.joined = asyncio.Event()

    def find(self, name):
        self.asked += 1
        if (found := super().find(name)) is not None:
            self.joined.set()
        return found


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def audited(database, spool, shot, **parts):
    """A service with its real audit log."""
    engine = engine_for(database.url)
    try:
        async with running(shot, log=SqlAuditSink(engine, spool), **parts) as service:
            yield service
    finally:
        engine.dispose()


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_two_at_once_are_one_call_and_get_the_same_bytes(path, stream):
    (shot, backend), recordings = gated(snapshot()), Watched()
    async with running(shot, recordings=recordings) as service:
        first = asyncio.create_task(post(service, path, stream=stream))
        await backend.stopped.wait()
        second = asyncio.create_task(post(service, path, stream=stream))
        await recordings.joined.wait()
        backend.opened.set()
        (status, told, body), (status2, told2, body2) = await first, await second
    assert (status, status2) == (200, 200)
    assert b"three" in body
    assert body == body2
    assert told["x-cascade-request-id"] == told2["x-cascade-request-id"]
    assert (told.get(REPLAY), told2.get(REPLAY)) == (None, "true")
    assert len(backend.requests) == len(service.log.results) == 1
    assert service.log.results[0].request.idempotency_key == "k1"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_later_repetition_gets_the_recording(serve, stream):
    service = await serve()
    first, again = await post(service, stream=stream), await post(service, stream=stream)
    assert first[2] == again[2]
    assert again[1][REPLAY] == "true"
    assert again[1]["x-cascade-cost-usd" if not stream else "x-cascade-tier"]
    assert len(service.backend("small").requests) == 1


async def test_a_client_that_leaves_mid_stream_finds_everything_when_it_returns():
    shot, backend = gated(snapshot())
    async with running(shot) as service:
        async with streaming(service) as response:
            assert b"one" in await response.content.readany()
        async with streaming(service) as response:
            begun = await response.content.readany()  # what was said before, at once
            assert b"one" in begun
            assert b"two" not in begun
            backend.opened.set()
            rest = await response.read()
    assert b"three" in rest
    assert rest.endswith(b"data: [DONE]\n\n")
    assert len(backend.requests) == 1
    assert not backend.cancelled
    assert service.log.results[0].cancelled is False


async def test_a_client_that_leaves_before_a_whole_answer_finds_it_when_it_returns():
    shot, backend = gated(snapshot())
    async with running(shot) as service:
        first = asyncio.create_task(post(service))
        await backend.stopped.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        backend.opened.set()
        status, _, body = await post(service)
    assert status == 200
    assert b"one two three" in body
    assert len(backend.requests) == 1


async def test_without_the_header_a_client_that_leaves_still_ends_the_work():
    shot, backend = gated(snapshot())
    async with running(shot) as service:
        first = asyncio.create_task(post(service, key=None))
        await backend.stopped.wait()
        first.cancel()
        await until(lambda: backend.cancelled)
        await until(lambda: service.log.results)
    assert service.log.results[0].cancelled


async def test_the_same_key_for_another_request_is_refused(serve):
    service = await serve()
    await post(service)
    status, _, body = await post(service, temperature=0.5)
    assert status == 422
    assert b'"code":"idempotency_key_reused"' in body
    assert b'"param":"idempotency-key"' in body
    status, _, body = await post(service, MESSAGES)
    assert status == 422
    assert b'"type":"invalid_request_error"' in body
    assert len(service.backend("small").requests) == 1


async def test_tenants_do_not_share_keys(serve):
    service = await serve(small=["one", "two"])
    mine = await post(service, headers={"x-cascade-tenant": "a"})
    theirs = await post(service, headers={"x-cascade-tenant": "b"})
    assert b"one" in mine[2]
    assert b"two" in theirs[2]


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9", "a\tb"])
async def test_a_key_that_is_none_names_the_header(serve, key):
    service = await serve()
    status, _, body = await post(service, key=key)
    assert status == 400
    assert b"1 to 255 printable ASCII" in body
    assert not service.backend("small").requests


@pytest.mark.parametrize("key", ["x", "x" * 255, "a key with ~ and spaces"])
async def test_a_key_may_be_any_printable_text(serve, key):
    service = await serve()
    assert (await post(service, key=key))[0] == 200
    assert (await post(service, key=key))[1][REPLAY] == "true"


@pytest.mark.parametrize(
    "failing",
    [Script(error="BackendServerError"), Script(text="one two three", cut_after=1)],
    ids=["at once", "after text"],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_is_tried_again(serve, failing, stream):
    service = await serve(small=[failing, "four"])
    first = await post(service, stream=stream)
    assert b'"error"' in first[2]
    status, told, body = await post(service, stream=stream)
    assert status == 200
    assert b"four" in body
    assert REPLAY not in told
    assert (await post(service, stream=stream))[2] == body


async def test_a_bug_is_a_500_that_is_not_kept(serve):
    service = await serve(judge=FixedJudge(KeyError("oops"), 0.9))
    status, _, body = await post(service, model="cascade")
    assert status == 500
    assert b"oops" not in body
    assert (await post(service, model="cascade"))[0] == 200


async def test_what_cannot_be_read_is_read_again(serve):
    service = await serve()
    assert (await post(service, messages=[]))[0] == 400
    assert (await post(service))[0] == 200


async def test_a_body_above_the_limit_is_refused_as_without_a_key():
    async with running(snapshot(), max_body_bytes=100) as service:
        status, told, body = await post(service, stop="x" * 100)
    assert status == 413
    assert b'"code":"request_too_large"' in body
    assert told["x-cascade-request-id"]


async def test_elsewhere_the_header_means_nothing(serve):
    service = await serve()
    async with (
        aiohttp.ClientSession(headers={"idempotency-key": "k1"}) as session,
        session.get(f"{service.url}/v1/models") as first,
        session.get(f"{service.url}/v1/models") as second,
    ):
        assert (first.status, second.status) == (200, 200)
        assert REPLAY not in second.headers


async def test_the_official_clients_send_the_key_and_read_the_replay(serve):
    service = await serve(small=["one", "two"])
    asked = {"model": "always-small", "messages": ASK, "extra_headers": {"Idempotency-Key": "k"}}
    async with client(service) as ai:
        answers = [await ai.chat.completions.create(**asked) for _ in range(2)]
        with pytest.raises(openai.UnprocessableEntityError) as raised:
            await ai.chat.completions.create(**asked, temperature=1)
    assert answers[0] == answers[1]
    assert raised.value.code == "idempotency_key_reused"
    async with anthropic.AsyncAnthropic(base_url=service.url, api_key="none") as ai:
        asked |= {"max_tokens": 9, "extra_headers": {"Idempotency-Key": "m"}}
        assert await ai.messages.create(**asked) == await ai.messages.create(**asked)
    assert len(service.backend("small").requests) == 2


async def test_an_automatic_retry_of_the_openai_client_is_not_paid_again():
    (shot, backend), recordings = gated(snapshot()), Watched()
    async with (
        running(shot, recordings=recordings) as service,
        openai.AsyncOpenAI(
            base_url=f"{service.url}/v1", api_key="none", max_retries=9, timeout=0.5
        ) as ai,
    ):
        asking = asyncio.create_task(
            ai.chat.completions.create(
                model="always-small", messages=ASK, extra_headers={"Idempotency-Key": "k"}
            )
        )
        await recordings.joined.wait()
        backend.opened.set()
        answer = await asking
    assert answer.choices[0].message.content == "one two three"
    assert len(backend.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_after_a_restart_the_audit_log_knows_the_key(database, tmp_path, stream):
    async with audited(database, tmp_path / "spool", snapshot()) as service:
        first = await post(service, stream=stream)
    async with audited(database, tmp_path / "spool", snapshot()) as service:
        status, _, body = await post(service, stream=stream)
        assert status == 409
        assert b'"code":"idempotency_answer_gone"' in body
        assert first[1]["x-cascade-request-id"].encode() in body
        assert not service.backend("small").requests
        assert (await post(service, headers={"x-cascade-tenant": "other"}))[0] == 200
        assert (await post(service, key="new"))[0] == 200


async def test_the_official_clients_do_not_try_again_what_is_gone():
    asked = {"model": "always-small", "messages": ASK, "extra_headers": {"Idempotency-Key": "k"}}
    recordings = Watched(RecordingLimits(bytes=0))
    async with running(snapshot(), recordings=recordings) as service:
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none") as ai:
            await ai.chat.completions.create(**asked)
            with pytest.raises(openai.ConflictError):
                await ai.chat.completions.create(**asked)
        async with anthropic.AsyncAnthropic(base_url=service.url, api_key="none") as ai:
            with pytest.raises(anthropic.ConflictError):
                await ai.messages.create(**asked, max_tokens=9)
    assert recordings.asked == 3


async def test_after_a_restart_in_an_outage_the_spool_knows_the_key(database, tmp_path):
    with database.outage():
        async with audited(database, tmp_path / "spool", snapshot()) as service:
            assert (await post(service))[0] == 200
        async with audited(database, tmp_path / "spool", snapshot()) as service:
            assert (await post(service))[0] == 409
            assert (await post(service, key="new"))[0] == 200


async def test_a_failed_request_runs_again_after_a_restart(database, tmp_path):
    failing = snapshot(small=[Script(error="BackendServerError")])
    async with audited(database, tmp_path / "spool", failing) as service:
        assert (await post(service))[0] == 502
    async with audited(database, tmp_path / "spool", snapshot()) as service:
        assert (await post(service))[0] == 200


async def test_what_memory_has_no_room_for_is_refused_rather_than_paid_again(database, tmp_path):
    small = Recordings(RecordingLimits(bytes=6000))
    shot = snapshot()
    async with audited(database, tmp_path / "spool", shot, recordings=small) as service:
        for key in ("k1", "k2"):
            assert (await post(service, key=key))[0] == 200
        assert (await post(service, key="k1"))[1][REPLAY] == "true"
        assert (await post(service, key="k3"))[0] == 200  # k2 is the least recently asked for
        assert (await post(service, key="k1"))[1][REPLAY] == "true"
        assert (await post(service, key="k2"))[0] == 409
        assert len(service.backend("small").requests) == 3


async def test_at_the_end_detached_work_is_waited_for():
    shot, backend = gated(snapshot())
    async with running(shot) as service:
        first = asyncio.create_task(post(service))
        await backend.stopped.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        asyncio.get_running_loop().call_later(0.1, backend.opened.set)
    assert service.log.results[0].completion is not None
    assert not backend.cancelled
