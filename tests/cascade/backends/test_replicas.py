"""Several servers of a model behind one backend."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.backends.replica_choice import Candidate, Prompt, rule_of
from cascade.backends.replicas import Replica, ReplicasBackend
from cascade.errors import (
    BackendConnectionError,
    BackendCoolingDownError,
    BackendOverloadedError,
    BackendRefusedError,
    BackendServerError,
    BackendUnreachableError,
    ConfigError,
)
from cascade.sight import Seen, Sight
from cascade.types import ChatRequest
from tests.guards import Clock, cooling
from tests.upstream import DONE, Upstream, serving, words

ANSWER = [*words("one", " two"), DONE]


def request(session="s", tenant="t", system="You help."):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
    return ChatRequest(id=f"r-{session}", messages=messages, tenant=tenant, session=session)


@asynccontextmanager
async def two(first=ANSWER, second=ANSWER, *, guard=None, rule=None, look=None):
    """Two servers that answer so, or are down where that is None, and the backend before them."""
    upstreams = {"a": Upstream(pieces=first or ()), "b": Upstream(pieces=second or ())}
    async with serving(upstreams["a"]) as a, serving(upstreams["b"]) as b:
        urls = {
            "a": a.url if first is not None else "http://127.0.0.1:1/v1",
            "b": b.url if second is not None else "http://127.0.0.1:1/v1",
        }
        replicas = {}
        for name, url in urls.items():
            backend = OpenAIHttpBackend(url=url, model="m")
            replicas[name] = guard(backend) if guard else Replica(backend=backend)
        together = ReplicasBackend(replicas, rule=rule)
        if look is not None:
            together.watch(look)
        try:
            yield together, upstreams
        finally:
            await together.aclose()


def asked(upstreams):
    return {name: len(upstream.bodies) for name, upstream in upstreams.items()}


async def read(stream, into):
    async for chunk in stream:
        into.append(chunk)  # what came before the error is looked at


def session_of(name):
    """A conversation whose server it is, of the two."""
    asks, known = rule_of("session"), [Candidate(name=each) for each in "ab"]
    sessions = (f"s{i}" for i in range(100))
    whose = {s: asks.choose(Prompt(session=f"t\x1f{s}", prefix=""), known).name for s in sessions}
    return next(session for session, server in whose.items() if server == name)


async def test_a_conversation_stays_at_its_server_and_the_completion_says_which():
    async with two() as (backend, upstreams):
        for _ in range(5):
            assert (await backend.complete(request("s"))).replica in upstreams
        assert sorted(asked(upstreams).values()) == [0, 5]
        names = {(await backend.complete(request(f"s{i}"))).replica for i in range(12)}
        assert names == {"a", "b"}


async def test_sessions_of_the_same_name_are_each_tenants_own():
    async with two() as (backend, _):
        names = {(await backend.complete(request("s", f"t{i}"))).replica for i in range(12)}
        assert names == {"a", "b"}


async def test_prefix_hash_goes_by_the_tenants_system_prompt():
    async with two(rule="prefix_hash") as (backend, upstreams):
        for i in range(6):
            await backend.complete(request(f"s{i}"))
        assert sorted(asked(upstreams).values()) == [0, 6]
        others = [request("s", system=f"You are number {number}.") for number in range(12)]
        assert {(await backend.complete(each)).replica for each in others} == {"a", "b"}


async def test_a_server_that_is_down_is_passed_over():
    async with two(None) as (backend, upstreams):
        completion = await backend.complete(request(session_of("a")))
        assert (completion.text, completion.replica) == ("one two", "b")
        assert asked(upstreams)["b"] == 1


@pytest.mark.parametrize(("status", "headers"), [(503, {}), (429, {"Retry-After": "3"})])
async def test_a_server_that_turns_the_request_away_is_passed_over(status, headers):
    async with two() as (backend, upstreams):
        upstreams["a"].status, upstreams["a"].headers = status, headers
        completion = await backend.complete(request(session_of("a")))
        assert completion.replica == "b"
        assert asked(upstreams) == {"a": 1, "b": 1}


async def test_a_refusal_is_not_carried_to_the_other_server():
    async with two([b"{}"]) as (backend, upstreams):
        upstreams["a"].status = 400
        with pytest.raises(BackendRefusedError):
            await backend.complete(request(session_of("a")))
        assert asked(upstreams) == {"a": 1, "b": 0}


async def test_a_server_that_may_have_worked_is_not_passed_over():
    """Who tries again counts that try; here nobody does."""
    async with two([*words()[:1], None]) as (backend, upstreams):
        with pytest.raises(BackendConnectionError):
            await backend.complete(request(session_of("a")))
        assert asked(upstreams) == {"a": 1, "b": 0}


async def test_no_other_server_takes_over_once_text_went_out():
    async with two([*words("one", finish=None), None]) as (backend, upstreams):
        seen = []
        with pytest.raises(BackendConnectionError):
            await read(backend.stream(request(session_of("a"))), seen)
        assert any(c["delta"].get("content") == "one" for k in seen for c in k.choices)
        assert asked(upstreams) == {"a": 1, "b": 0}


async def test_with_all_servers_down_the_last_error_is_told():
    async with two(None, None) as (backend, _):
        with pytest.raises(BackendUnreachableError):
            await backend.complete(request())


async def test_one_servers_cool_down_leaves_the_other_serving():
    clock = Clock()

    def guard(inner):
        guarded = cooling(inner, clock, min_calls=1, calls=1)
        return Replica(backend=guarded, cooling=guarded.cooling)

    async with two(guard=guard) as (backend, upstreams):
        upstreams["a"].status = 500
        mine = request(session_of("a"))
        for _ in range(3):
            assert (await backend.complete(mine)).replica == "b"
        assert asked(upstreams) == {"a": 1, "b": 3}  # cooling, a was not asked again
        assert not backend.cooling()
        upstreams["b"].status = 500
        with pytest.raises(BackendServerError):
            await backend.complete(mine)
        assert backend.cooling()
        with pytest.raises(BackendCoolingDownError):
            await backend.complete(mine)
        clock.pass_(10)
        upstreams["a"].status = 200
        assert (await backend.complete(mine)).replica == "a"


async def test_requests_that_arrive_together_are_spread():
    slow = [0.2, *ANSWER]
    sight = Sight(tokens=100, prefix="p", prefix_tokens=90, seen=Seen())
    async with two(slow, slow, rule="cache_aware", look=lambda *_: sight) as (backend, _):
        done = await asyncio.gather(*(backend.complete(request(f"s{i}")) for i in range(20)))
        assert Counter(each.replica for each in done) == {"a": 10, "b": 10}


async def test_a_client_that_leaves_and_a_failure_free_the_server():
    sight = Sight(tokens=100, prefix="p", prefix_tokens=90, seen=Seen())
    async with two(rule="cache_aware", look=lambda *_: sight) as (backend, upstreams):
        stream = backend.stream(request())
        await anext(stream)
        await stream.aclose()
        upstreams["a"].status = upstreams["b"].status = 429
        with pytest.raises(BackendOverloadedError):
            await backend.complete(request())
        upstreams["a"].status = upstreams["b"].status = 200
        waiting = [backend.complete(request(f"s{i}")) for i in range(10)]
        assert Counter(each.replica for each in await asyncio.gather(*waiting)) == {"a": 5, "b": 5}


async def test_the_server_whose_cache_holds_the_prompt_is_asked():
    asked_of = []

    def look(asking, servers):
        asked_of.append((asking.session, sorted(servers)))
        seen = Seen(warm_tokens={"b": 160})
        return Sight(tokens=165, prefix="p", prefix_tokens=0, seen=seen)

    for rule in ("cache_aware", None):
        async with two(rule=rule, look=look) as (backend, _):
            for i in range(4):
                assert (await backend.complete(request(f"s{i}"))).replica == "b"
    assert asked_of[0] == ("s0", ["a", "b"])


async def test_a_rule_that_reads_no_caches_asks_nobody():
    async with two(rule="session", look=lambda *_: 1 / 0) as (backend, _):
        assert (await backend.complete(request())).text == "one two"


async def test_until_somebody_says_what_is_warm_conversations_stay():
    for rule in ("cache_aware", "balanced_cache", None):
        async with two(rule=rule) as (backend, upstreams):
            for _ in range(4):
                await backend.complete(request("s"))
            assert sorted(asked(upstreams).values()) == [0, 4]


async def test_the_first_piece_already_says_whose_it_is():
    async with two() as (backend, _):
        chunks = []
        await read(backend.stream(request(session_of("b"))), chunks)
        assert {chunk.replica for chunk in chunks} == {"b"}


async def test_what_nobody_knows_the_prompt_of_is_sent_all_the_same():
    async with two(rule="balanced_cache", look=lambda *_: None) as (backend, _):
        assert (await backend.complete(request())).text == "one two"


def test_there_has_to_be_a_server():
    with pytest.raises(ConfigError, match="no server"):
        ReplicasBackend({})
