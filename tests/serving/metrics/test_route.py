"""/metrics of a whole service."""

import asyncio

import aiohttp
import pytest

from cascade.backends.scripted import Script
from cascade.engine import CascadeEngine
from cascade.types import Usage
from serving.app import create_app
from serving.metrics.metrics import Metrics
from serving.service import Service
from tests.apis import CHAT, ask
from tests.engines import FixedJudge
from tests.metrics import Read
from tests.services import MemoryLog, NoServers, listening, snapshot
from tests.serving.test_readiness import audit

PATH = "/metrics"


def app_of(**options):
    """An application with metrics, over scripted tiers, and its log."""
    served, log = snapshot(**options), MemoryLog(audit())
    engine = CascadeEngine(served, log)
    metrics = Metrics(engine.forecast)
    engine = CascadeEngine(served, metrics.before(log), forecast=engine.forecast)
    service = Service(
        engine=engine, sink=log, servers=NoServers(), max_body_bytes=99_999, metrics=metrics
    )
    return create_app(service), log


async def read(app):
    answer = await ask(app, PATH, b"", method="GET")
    assert answer.status == 200
    return Read(answer.body)


def text(answer, **usage):
    return Script(text=answer, usage=Usage(**usage))


async def test_an_escalated_request_is_told_from_end_to_end():
    small = [text("5", input=70, cache_read=30, output=3)]
    large = [text("4", input=100, cache_read=0, output=2)]
    app, log = app_of(small=small, large=large, judge=FixedJudge(0.1))
    answer = await ask(app, CHAT.path, CHAT.body(), [(b"x-cascade-tenant", b"acme")])
    assert answer.status == 200
    told = await read(app)
    assert told("requests_total", experiment="", policy="ladder", status="ok") == 1
    way = {"from_tier": "small", "to_tier": "large", "cause": "rejected"}
    assert told("escalations_total", **way) == 1
    assert told("prefill_tokens_total", tier="small") == 100
    assert told("prefix_cache_hit_tokens_total", tier="small") == 30
    assert told("decode_tokens_total", tier="large") == 2
    # $1 a million tokens in, a tenth of that if cached, $2 out: (70 + 3 + 6) and (100 + 4)
    assert told("cost_usd_total", tier="small", kind="answer") == pytest.approx(79e-6)
    assert told("cost_usd_total", tier="large", kind="answer") == pytest.approx(104e-6)
    assert told("cold_premium_usd_total", tier="large") == pytest.approx(90e-6)
    assert told("ttft_ms_count", tier="large") == 1
    assert told("queue_wait_ms_sum", tier="large") == 0
    assert told("tenant_cache_affinity") == pytest.approx(100 / 198)  # both got all of it
    assert told("audit_dropped_total") == 0
    assert len(log.results) == 1


async def test_an_openai_client_and_prometheus_are_served_on_one_port():
    app, _ = app_of()
    async with listening(app) as url, aiohttp.ClientSession() as http:
        await (await http.post(f"{url}{CHAT.path}", json=CHAT.body())).read()
        answer = await http.get(f"{url}{PATH}")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        told = Read(await answer.text())
    assert told("requests_total", experiment="", policy="ladder", status="ok") == 1


async def test_a_request_is_in_flight_until_its_answer_is_whole():
    app, _ = app_of(small=[Script(text="four", first_token_seconds=30)])
    under_way = asyncio.create_task(ask(app, CHAT.path, CHAT.body()))
    await asyncio.sleep(0.05)
    assert (await read(app))("requests_in_flight") == 1
    under_way.cancel()
    await asyncio.gather(under_way, return_exceptions=True)
    assert (await read(app))("requests_in_flight") == 0


async def test_names_that_a_client_makes_up_become_no_labels():
    app, _ = app_of()
    for n in range(5):
        headers = [(b"x-cascade-tenant", b"tenant-%d" % n), (b"x-cascade-session", b"s-%d" % n)]
        await ask(app, CHAT.path, CHAT.body(), headers)
        assert (await ask(app, CHAT.path, CHAT.body(model=f"made-up-{n}"), headers)).status == 404
    body = (await ask(app, PATH, b"", method="GET")).body.decode()
    assert "tenant-" not in body
    assert "made-up" not in body
    assert len(Read(body).labels("requests_total")) == 1


async def test_a_fault_in_counting_fails_no_request():
    class Broken(Metrics):
        def note(self, result):
            raise RuntimeError("a bug")

    served, log = snapshot(), MemoryLog()
    forecast = CascadeEngine(served, log).forecast
    engine = CascadeEngine(served, Broken(forecast).before(log), forecast=forecast)
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    app = create_app(Service(engine=engine, sink=log, servers=NoServers(), max_body_bytes=9_999))
    assert (await ask(app, CHAT.path, CHAT.body())).status == 200
    await asyncio.sleep(0)
    assert [str(each["exception"]) for each in faults] == ["a bug"]


async def test_without_metrics_there_is_no_such_route():
    log = MemoryLog()
    engine = CascadeEngine(snapshot(), log)
    app = create_app(Service(engine=engine, sink=log, servers=NoServers(), max_body_bytes=9))
    answer = await ask(app, PATH, b"", method="GET")
    assert (answer.status, answer.json["error"]["code"]) == (404, "no_such_route")
