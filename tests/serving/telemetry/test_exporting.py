"""Spans on their way to a collector, over a real connection."""

import asyncio
import gzip
import json
import logging
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from cascade.engine import CascadeEngine
from cascade.errors import ConfigError
from serving.config import Config
from serving.telemetry.make import provider, tracing
from tests.builders import request
from tests.chats import ASK, client
from tests.end_to_end.processes import CascadeProcess
from tests.engines import FixedJudge, MemorySink
from tests.services import MemoryLog, running, snapshot
from tests.serving.telemetry.test_tracing import PARENT
from tests.serving.test_config import GOOD
from tests.upstream import DONE, Upstream, serving, words


@contextmanager
def collector(status=200):
    got = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            body = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            got.append((self.path, dict(self.headers), ExportTraceServiceRequest.FromString(body)))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def config(endpoint, **settings):
    tiers = {"small": {"backend": "scripted", "price": {"input": 1, "cache_read": 1, "output": 1}}}
    told = {"endpoint": endpoint, **settings}
    return Config.model_validate({"tiers": tiers, "server": {"tracing": told}})


async def test_a_collector_gets_the_spans_of_what_a_service_answered(monkeypatch):
    monkeypatch.setenv("COLLECTOR_KEY", "abc")
    with collector() as (url, got):
        traces = tracing(
            config(
                f"{url}/v1/traces", service="front", headers_env={"authorization": "COLLECTOR_KEY"}
            )
        )
        made = snapshot(judge=FixedJudge(0.1))
        log = Told(traces)
        async with running(made, log=log, background=[traces]) as service, client(service) as asks:
            await asks.chat.completions.create(model="cascade", messages=ASK)
    path, headers, sent = got[0]
    assert path == "/v1/traces"
    assert headers["authorization"] == "abc"
    resource = sent.resource_spans[0]
    named = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert named["service.name"] == "front"
    names = [span.name for scope in resource.scope_spans for span in scope.spans]
    assert names == ["chat small-model", "evaluate told", "chat large-model", "chat cascade"]


async def test_a_collector_that_is_down_is_said_once_and_costs_no_answer(caplog):
    traces = tracing(config("http://127.0.0.1:9/v1/traces"))
    made = snapshot()
    engine = CascadeEngine(made, traces.before(MemorySink()))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            result = await engine.run(request(model="cascade"), made.arm("cascade", ""))
            traces.note(result)
            traces._provider.force_flush()  # noqa: SLF001 - to have two failures
        await traces.aclose()
    assert result.completion is not None
    told = [line for line in caplog.messages if "cannot be sent" in line]
    assert told == ["spans cannot be sent to http://127.0.0.1:9/v1/traces and are lost"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"backend": "litellm_api", "model": "anthropic/claude-haiku-4-5"}, "anthropic"),
        ({"backend": "litellm_api", "model": "mistral/large"}, "mistral_ai"),
        ({"backend": "litellm_api", "model": "gpt-5-mini"}, "openai"),
        ({"backend": "openai_http", "url": "https://api.openai.com/v1", "model": "m"}, "openai"),
        ({"backend": "openai_http", "url": "http://gpu:8000/v1", "model": "m"}, "openai_http"),
        ({"backend": "openai_http", "launch": {"engine": "llama_cpp", "model": "q"}}, "llama_cpp"),
    ],
)
def test_a_tier_is_told_by_who_serves_it(entry, expected):
    made = Config.model_validate({"tiers": {"t": entry}})
    assert provider(made.tiers["t"]) == expected


class Told(MemoryLog):
    """A log whose results are told to a collector as well."""

    def __init__(self, traces):
        super().__init__()
        self._traces = traces

    def write(self, result):
        super().write(result)
        self._traces.note(result)


async def test_the_command_tells_the_collector_and_the_model_server_of_a_clients_trace(tmp_path):
    upstream = Upstream(pieces=[*words("four"), DONE])
    async with serving(upstream):
        spans, identity = await asyncio.to_thread(_told_of_one_request, tmp_path, upstream.url)
    call, whole = spans
    trace, span = (int(part, 16) for part in upstream.sent[0]["traceparent"].split("-")[1:3])
    assert {int(span.trace_id.hex(), 16) for span in spans} == {trace}
    assert f"{trace:032x}" == PARENT.split("-")[1]
    assert int(call.span_id.hex(), 16) == span
    assert call.parent_span_id == whole.span_id
    assert identity in [each.value.string_value for each in whole.attributes]


def _told_of_one_request(tmp_path, upstream):
    far = f"  far: {{backend: openai_http, url: {upstream}, model: m}}"
    with collector() as (url, got):
        path = tmp_path / "cascade.yaml"
        tiers = GOOD.replace("tiers:\n", f"tiers:\n{far}\n", 1)
        path.write_text(f"server: {{tracing: {{endpoint: {url}/v1/traces}}}}\n{tiers}")
        service = CascadeProcess(path, CASCADE_HOME=str(tmp_path / "home"))
        service.start()
        try:
            asked = urllib.request.Request(
                f"{service.url}/v1/chat/completions",
                data=json.dumps({"model": "far", "messages": ASK}).encode(),
                headers={"content-type": "application/json", "traceparent": PARENT},
            )
            with urllib.request.urlopen(asked, timeout=60) as answer:
                identity = answer.headers["x-cascade-request-id"]
        finally:
            service.stop()
    scopes = [
        scope for _, _, sent in got for each in sent.resource_spans for scope in each.scope_spans
    ]
    return [span for scope in scopes for span in scope.spans], identity


def test_a_key_that_is_not_in_the_environment_is_named_with_its_line(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    made = config("http://127.0.0.1:9/v1/traces", headers_env={"authorization": "NO_SUCH_KEY"})
    with pytest.raises(ConfigError, match="NO_SUCH_KEY is not set") as caught:
        tracing(made)
    assert caught.value.param == "server.tracing.headers_env.authorization"
