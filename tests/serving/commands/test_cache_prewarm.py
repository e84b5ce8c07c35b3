import asyncio
import json
import urllib.request

import pytest
from click.testing import CliRunner

from serving.cli import cascade
from serving.store import queries, schema
from serving.store.database import engine_for
from serving.store.keys import new_key
from tests.end_to_end.processes import CascadeProcess
from tests.metrics import Read
from tests.services import running, snapshot
from tests.serving.test_config import GOOD

CONFIG = """
tiers:
  t: {backend: scripted, price: {input: 3, cache_read: 0.3, output: 15}}
  small: {backend: scripted, price: {input: 3, cache_read: 0.3, output: 15}}
  ours: {backend: openai_http, launch: {engine: llama_cpp, model: qwen2.5-coder-0.5b}}
  salted: {backend: openai_http, url: 'http://127.0.0.1:9/v1', model: m, salt_tenants: true}
  keyed: {backend: openai_http, url: 'http://127.0.0.1:9/v1', model: m, cache_key: true}
"""
BODY = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CASCADE_AUDIT_URL", raising=False)
    monkeypatch.delenv("CASCADE_AUDIT_KEY", raising=False)
    (tmp_path / "cascade.yaml").write_text(CONFIG)
    (tmp_path / "body.json").write_text(json.dumps(BODY))
    schema.upgrade(f"sqlite:///{tmp_path}/cascade.db")
    return tmp_path


def run(folder, tier, *more, body="body.json"):
    """Exit status, output, and the message of a CascadeError."""
    files = ["--request", str(folder / body), "--config", str(folder / "cascade.yaml")]
    done = CliRunner().invoke(cascade, ["cache", "prewarm", tier, *files, *more])
    return done.exit_code, done.output, getattr(done.exception, "message", "")


def test_it_says_what_was_kept_what_it_cost_and_whether_it_pays(folder):
    status, output, fault = run(folder, "t", "--uses", "20")
    assert status == 0, fault
    assert "t (scripted) in" in output
    assert "10 prompt tokens: 0 read, 10 computed" in output
    assert "cost $0.0000600" in output
    assert "(w - r) / (1 - r) = (1 - 0.1) / (1 - 0.1) = 1.000: from 2 requests on" in output
    assert "20 uses of 10 tokens:" in output
    assert "prewarmed    $0.0000900" in output
    assert "note: a write costs no more here" in output
    assert "note: it is not known how this tier's cache works" in output


def test_it_says_the_same_to_machines_and_the_log_has_it(folder):
    status, output, _ = run(folder, "t", "--json")
    report = json.loads(output)
    assert (status, report["tier"], report["cost_usd"]) == (0, "t", "0.00006")
    assert report["usage"] == {"input": 10, "cache_read": 0, "cache_write": None, "output": 2}
    assert report["economics"]["pays"] is True
    assert report["economics"]["dollars"]["prewarmed"] == "0.000060"
    engine = engine_for(f"sqlite:///{folder}/cascade.db")
    [row] = queries.tail(engine, 10)
    engine.dispose()
    assert (row.id, row.tenant) == (report["request_id"], "default")
    assert [attempt.kind for attempt in row.attempts] == ["prewarm"]


def logged(folder):
    engine = engine_for(f"sqlite:///{folder}/cascade.db")
    [row] = queries.tail(engine, 1)
    engine.dispose()
    return row.prompt_hash, [segment["raw"] for segment in row.segments or ()]


def test_the_log_keeps_of_its_prompt_what_it_keeps_of_any(folder, monkeypatch):
    hashes = []
    for key in ("", new_key(), new_key()):
        monkeypatch.setenv("CASCADE_AUDIT_KEY", key)
        run(folder, "t")
        hashes.append(logged(folder))
    prompts, segments = zip(*hashes, strict=True)
    assert len(set(prompts)) == len({raw for [raw] in segments}) == 3
    (folder / "cascade.yaml").write_text(f"{CONFIG}\naudit: {{prompts: none}}\n")
    run(folder, "t")
    assert logged(folder) == ("", [])


def test_a_tenants_cache_is_filled_for_that_tenant(folder):
    run(folder, "t", "--tenant", "acme")
    engine = engine_for(f"sqlite:///{folder}/cascade.db")
    [row] = queries.tail(engine, 10)
    engine.dispose()
    assert row.tenant == "acme"


@pytest.mark.parametrize(
    ("tier", "fault"),
    [
        ("none", "there is no tier 'none'; there are: t, small, ours"),
        ("ours", "ours: `cascade serve` launches its server.*--through http://127.0.0.1:8080"),
        ("salted", "salted: without salt_key_env.*--through"),
        ("keyed", r"--max-tokens"),
    ],
)
def test_what_cannot_work_says_what_can(folder, tier, fault):
    import re

    status, _, message = run(folder, tier)
    assert status == 1
    assert re.search(fault, message), message


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("[]", "must be a JSON object"),
        ("{", "not JSON"),
        ('{"messages": []}', "messages"),
        ('{"messages": [{"role": "user"}], "max_tokens": "x"}', "max_tokens"),
    ],
)
def test_a_request_that_is_none_is_refused_with_file_and_field(folder, body, fault):
    (folder / "bad.json").write_text(body)
    status, _, message = run(folder, "t", body="bad.json")
    assert status == 1
    assert "bad.json" in message
    assert fault in message


async def test_a_running_service_can_be_asked_to_send_it(folder):
    async with running(snapshot()) as service:
        more = ("--through", service.url, "--tenant", "acme", "--json")
        status, output, fault = await asyncio.to_thread(run, folder, "small", *more)
        assert status == 0, fault
        [asked] = service.backend("small").requests
        assert (asked.tenant, asked.params) == ("acme", {"temperature": 0, "max_tokens": 1})
        [result] = service.log.results
        assert result.request.prewarm
        report = json.loads(output)
        assert report["request_id"] == result.request.id
        assert report["cost_usd"] == f"{result.cost.total:f}"
        assert report["usage"]["input"] == 10


def test_the_running_services_log_has_it_as_spent_and_as_nobodys_answer(folder):
    served = CascadeProcess(folder / "served.yaml", CASCADE_HOME=str(folder / "home"))
    served.config.write_text(GOOD)
    served.start()
    try:
        status, output, fault = run(folder, "small", "--through", served.url, "--json")
        assert status == 0, fault
        told = Read(urllib.request.urlopen(f"{served.url}/metrics", timeout=60).read())
    finally:
        served.stop()
    assert told("cost_usd_total", tier="small", kind="prewarm") > 0
    assert told("prefill_tokens_total", tier="small") is None
    engine = engine_for(f"sqlite:///{folder}/cascade.db")
    [row] = queries.tail(engine, 10)
    engine.dispose()
    assert (row.id, row.policy) == (json.loads(output)["request_id"], "prewarm")
    assert (row.tier, row.answers, row.baseline_pico) == (None, 0, None)
    assert row.cost_pico > 0
    assert [attempt.kind for attempt in row.attempts] == ["prewarm"]


async def test_a_service_that_refuses_or_is_not_there_is_told(folder):
    async with running(snapshot()) as service:
        more = ("--through", service.url)
        status, _, fault = await asyncio.to_thread(run, folder, "t", *more)
        assert status == 1
        assert "refused: there is no model 't'" in fault
    status, _, fault = await asyncio.to_thread(run, folder, "small", *more)
    assert status == 1
    assert "does not answer" in fault
    status, _, fault = await asyncio.to_thread(run, folder, "small", "--through", "ftp://x")
    assert "begins with http" in fault


def test_it_says_before_it_asks_what_thinking_may_cost(folder):
    budget = {"type": "enabled", "budget_tokens": 2000}
    (folder / "thinking.json").write_text(json.dumps({**BODY, "thinking": budget}))
    _, output, _ = run(folder, "t", body="thinking.json")
    assert output.startswith("note: it may think: up to 2,001 tokens of output")
    assert "$0.030015 at most" in output
