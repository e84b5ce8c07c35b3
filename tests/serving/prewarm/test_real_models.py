"""A prompt that was sent ahead is found in the cache of a real server."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from cascade.types import ChatRequest
from serving.cli import cascade
from serving.commands.options import load, wire
from serving.store import schema
from tests.real_models import SMALL, running

pytestmark = pytest.mark.real_models

RULES = " ".join(f"Rule {n}: answer question {n} in no more than {n} words." for n in range(1, 41))


def asking(text):
    return [{"role": "system", "content": RULES}, {"role": "user", "content": text}]


async def ask(backend, messages):
    request = ChatRequest(id="r", messages=messages, params={"max_tokens": 1})
    try:
        return (await backend.complete(request)).usage
    finally:
        await backend.aclose()


def test_the_request_after_a_prewarm_reads_its_prefix_from_the_cache(tmp_path, monkeypatch):
    schema.upgrade(f"sqlite:///{tmp_path}/cascade.db")
    file, body = tmp_path / "cascade.yaml", tmp_path / "body.json"
    body.write_text(json.dumps({"messages": asking("What is rule 3?"), "temperature": 0}))
    with running(SMALL) as server:
        monkeypatch.setenv("CASCADE_TEST_KEY", server.api_key)
        file.write_text(
            f"tiers:\n  t: {{backend: openai_http, url: '{server.url}/v1', model: {SMALL},\n"
            "      api_key_env: CASCADE_TEST_KEY, cache: {slots: 2},\n"
            "      price: {input: 0.02, cache_read: 0.002, output: 0.04}}\n"
        )
        arguments = ["--request", str(body), "--config", str(file), "--json"]
        done = CliRunner().invoke(cascade, ["cache", "prewarm", "t", *arguments])
        assert done.exit_code == 0, done.exception
        ahead = json.loads(done.output)
        backend = wire(load(file)).tiers["t"].backend
        usage = asyncio.run(ask(backend, asking("And what is rule 17?")))
    assert ahead["usage"]["cache_read"] == 0
    assert ahead["usage"]["input"] > 600
    assert ahead["usage"]["output"] == 1
    assert usage.cache_read > 0.95 * usage.prompt
    assert any("each of its 2 slots" in note for note in ahead["notes"])
