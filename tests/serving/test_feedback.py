"""POST /v1/feedback, with the real audit log."""

from contextlib import asynccontextmanager

import aiohttp
import pytest
from sqlalchemy import select

from serving.store.database import engine_for
from serving.store.sink import SqlAuditSink
from serving.store.tables import feedback
from tests.chats import ASK, client
from tests.databases import database, postgres, template
from tests.services import running, snapshot

__all__ = ["database", "postgres", "template"]


@pytest.fixture
def audited(database, tmp_path):
    """Starts services on the database."""

    @asynccontextmanager
    async def start():
        engine = engine_for(database.url)
        try:
            sink = SqlAuditSink(engine, tmp_path / "spool")
            async with running(snapshot(), log=sink) as service:
                yield service
        finally:
            engine.dispose()

    return start


async def post(service, path="/v1/feedback", tenant=None, **body):
    headers = {"x-cascade-tenant": tenant} if tenant else {}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}{path}", json=body, headers=headers) as response,
    ):
        return response.status, await response.json()


async def asked(service, tenant=None):
    """A request's own id, and its answer's."""
    async with client(service) as ai:
        raw = await ai.chat.completions.with_raw_response.create(
            model="cascade",
            messages=ASK,
            extra_headers={"x-cascade-tenant": tenant} if tenant else {},
        )
    return raw.headers["x-cascade-request-id"], raw.parse().id


def rows(database):
    engine = engine_for(database.url)
    with engine.connect() as connection:
        found = connection.execute(select(feedback).order_by(feedback.c.source)).mappings().all()
    engine.dispose()
    return found


async def test_feedback_right_after_an_answer_is_stored(audited, database):
    async with audited() as service:
        request_id, _ = await asked(service)
        status, told = await post(service, request_id=request_id, score=0.5, label="so-so")
    assert status == 200
    assert told == {"object": "feedback", "request_id": request_id, "stored": True}
    (row,) = rows(database)
    assert (row["request_id"], row["tenant"], row["source"]) == (request_id, "default", "")
    assert (row["score"], row["label"], row["correction"]) == (0.5, "so-so", None)


async def test_the_ids_that_answers_carry_are_taken(audited, database):
    async with audited() as service:
        request_id, answer_id = await asked(service)
        assert answer_id == f"chatcmpl-{request_id}"
        for number, identity in enumerate((answer_id, f"msg_{request_id}", f"resp_{request_id}")):
            status, told = await post(
                service, request_id=identity, correction="4", source=f"s{number}"
            )
            assert (status, told["request_id"]) == (200, request_id)
    assert {row["request_id"] for row in rows(database)} == {request_id}


async def test_the_same_again_changes_nothing_and_another_word_replaces_it(audited, database):
    async with audited() as service:
        request_id, _ = await asked(service)
        for _ in range(3):
            status, _ = await post(service, request_id=request_id, score=1, comment="fine")
            assert status == 200
        (row,) = rows(database)
        assert (row["score"], row["comment"]) == (1.0, "fine")
        await post(service, request_id=request_id, label="bad")
        await post(service, request_id=request_id, label="good", source="ci")
    mine, cis = rows(database)
    assert (mine["score"], mine["label"], mine["comment"]) == (None, "bad", None)
    assert (cis["source"], cis["label"]) == ("ci", "good")


async def test_a_request_that_is_not_there_or_not_the_tenants_is_404(audited, database):
    async with audited() as service:
        request_id, _ = await asked(service, tenant="a")
        for tenant in (None, "b"):
            status, told = await post(service, request_id=request_id, score=1, tenant=tenant)
            assert status == 404
            assert told["error"]["code"] == "request_not_found"
            assert told["error"]["param"] == "request_id"
        assert (await post(service, request_id="nobody", score=1, tenant="a"))[0] == 404
        assert (await post(service, request_id=request_id, score=1, tenant="a"))[0] == 200
    assert [row["tenant"] for row in rows(database)] == ["a"]


async def test_in_an_outage_it_is_accepted_and_stored_later(audited, database):
    async with audited() as service:
        before, _ = await asked(service)
        assert (await post(service, request_id=before, score=0))[0] == 200
        with database.outage():
            during, _ = await asked(service)
            for request_id in (before, during):
                status, told = await post(service, request_id=request_id, score=1)
                assert status == 202
                assert told["stored"] is False
        assert service.log.flush(30)
    assert {(row["request_id"], row["score"]) for row in rows(database)} == {
        (before, 1.0),
        (during, 1.0),
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"score": 1}, "request_id"),
        ({"request_id": "", "score": 1}, "request_id"),
        ({"request_id": 7, "score": 1}, "request_id"),
        ({"request_id": "nul \0", "score": 1}, "request_id"),
        ({"request_id": "r"}, "score"),
        ({"request_id": "r", "comment": "says nothing"}, "score"),
        ({"request_id": "r", "score": 1.01}, "score"),
        ({"request_id": "r", "score": -0.1}, "score"),
        ({"request_id": "r", "score": True}, "score"),
        ({"request_id": "r", "score": "1"}, "score"),
        ({"request_id": "r", "label": ""}, "label"),
        ({"request_id": "r", "label": ["bad"]}, "label"),
        ({"request_id": "r", "label": "x" * 201}, "label"),
        ({"request_id": "r", "correction": {"text": "4"}}, "correction"),
        ({"request_id": "r", "score": 1, "source": "x" * 201}, "source"),
        ({"request_id": "r", "score": 1, "comment": 1}, "comment"),
        ({"request_id": "r", "score": 1, "lable": "bad"}, "lable"),
        ({"request_id": "r", "compared_to": "s"}, "score"),
        ({"request_id": "r", "compared_to": "s", "score": 1}, "preferred"),
        ({"request_id": "r", "preferred": "this"}, "compared_to"),
        ({"request_id": "r", "compared_to": "s", "preferred": "that"}, "preferred"),
        ({"request_id": "r", "compared_to": "chatcmpl-r", "preferred": "this"}, "compared_to"),
        ({"request_id": "r", "compared_to": "", "preferred": "this"}, "compared_to"),
        ({"request_id": "r", "score": 1, "given_at": "today"}, "given_at"),
        ({"request_id": "r", "score": 1, "given_at": -1}, "given_at"),
        ({"request_id": "r", "score": 1, "given_at": 1e11}, "given_at"),
    ],
)
async def test_what_is_wrong_is_named(serve, body, field):
    service = await serve()
    status, told = await post(service, **body)
    assert status == 400
    assert told["error"]["param"] == field
    assert field in told["error"]["message"]


async def test_one_answer_may_be_preferred_to_another(audited, database):
    async with audited() as service:
        (mine, _), (_, other) = await asked(service), await asked(service)
        status, _ = await post(service, request_id=mine, compared_to=other, preferred="this")
        assert status == 200
    (row,) = rows(database)
    assert (row["request_id"], row["preferred"], row["score"]) == (mine, "this", None)
    assert row["compared_to"] == other.removeprefix("chatcmpl-")


async def test_both_answers_of_a_comparison_must_be_the_tenants(audited, database):
    async with audited() as service:
        mine, _ = await asked(service, tenant="a")
        theirs, _ = await asked(service, tenant="b")
        for other in (theirs, "nobody"):
            status, told = await post(
                service, request_id=mine, compared_to=other, preferred="same", tenant="a"
            )
            assert (status, told["error"]["param"]) == (404, "compared_to")
    assert rows(database) == []


async def test_what_was_said_earlier_does_not_replace_a_later_word(audited, database):
    async with audited() as service:
        request_id, _ = await asked(service)
        await post(service, request_id=request_id, score=1)
        await post(service, request_id=request_id, score=0, given_at=1_700_000_000)
        await post(service, request_id=request_id, score=0.5, given_at=1_700_000_000, source="ci")
    mine, cis = rows(database)
    assert mine["score"] == 1
    assert (cis["score"], cis["given_at"]) == (0.5, 1_700_000_000)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b'"text"'])
async def test_what_is_no_object_is_a_400(serve, body):
    service = await serve()
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/feedback", data=body) as response,
    ):
        assert response.status == 400


async def test_a_body_above_the_limit_is_a_413():
    async with running(snapshot(), max_body_bytes=100) as service:
        status, _ = await post(service, request_id="r", correction="x" * 100)
    assert status == 413
