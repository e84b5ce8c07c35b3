"""The embedded server, with the real small model; its file is fetched once and kept."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from serving.models.fetch import locate
from serving.models.home import home
from serving.models.launch import Launch
from serving.models.state import Phase
from serving.models.supervisor import ModelServer
from tests.real_models import SMALL, running

pytestmark = pytest.mark.real_models


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with running(SMALL) as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {server.api_key}"}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        yield session


async def ask(client: aiohttp.ClientSession, question: str, **params: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 8}
    async with client.post("/v1/chat/completions", json=body | params) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_it_answers(client):
    answer = await ask(client, "What is 2 + 3? Answer with the number only.")
    assert answer["choices"][0]["message"]["content"].strip() == "5"
    assert answer["model"] == SMALL


async def test_it_gives_logprobs(client):
    answer = await ask(client, "Say hello.", logprobs=True, top_logprobs=2)
    entries = answer["choices"][0]["logprobs"]["content"]
    assert entries
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 2 for entry in entries)


async def test_it_reports_prompt_tokens_that_were_cached(client):
    question = "Which of these is a colour: " + ", ".join(map(str, range(60))) + ", red?"
    await ask(client, question)
    usage = (await ask(client, question))["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["prompt_tokens"] / 2 < cached < usage["prompt_tokens"]


async def test_it_keeps_to_a_json_schema(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    answer = await ask(client, "Two plus two?", response_format=form, max_tokens=32)
    assert isinstance(json.loads(answer["choices"][0]["message"]["content"])["n"], int)


async def test_it_turns_away_whoever_has_no_key_and_pages_of_other_origins(server):
    async with aiohttp.ClientSession(server.url) as session:
        url = "/v1/chat/completions"
        async with session.post(url, json={}, headers={"Origin": "http://a.test"}) as response:
            assert response.status == 401
            assert response.headers["Access-Control-Allow-Origin"] == server.url


async def test_it_shows_its_slots_and_metrics(client):
    async with client.get("/slots") as response:
        assert [slot["n_ctx"] for slot in await response.json()] == [2048, 2048]
    async with client.get("/metrics") as response:
        assert "llamacpp:prompt_tokens_total" in await response.text()


async def test_killed_it_comes_back_on_the_same_port_and_answers(server, client):
    before = server.state
    os.kill(before.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while server.state.restarts == before.restarts or server.state.state is not Phase.READY:
            await asyncio.sleep(0.05)
    assert server.state.pid != before.pid
    assert server.url == before.url
    assert (await ask(client, "Say hello."))["choices"]


def start(file: Path, port: int) -> "subprocess.Popen[bytes]":
    launch = Launch(tier="small", model=str(file), context=512, slots=1)
    return subprocess.Popen(
        launch.command(file, port, 1),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def until_listening(process: "subprocess.Popen[bytes]") -> None:
    for line in process.stdout:
        if b"listening on" in line:
            return
    pytest.fail("the server ended before it listened")


@pytest.mark.parametrize(("end", "code"), [("stdin", 0), ("SIGTERM", -signal.SIGTERM)])
def test_it_ends_with_its_standard_input_and_on_sigterm(end: str, code: int):
    with start(locate(SMALL, home()), 0) as process:
        until_listening(process)
        process.stdin.close() if end == "stdin" else process.terminate()
        assert process.wait(5) == code


def test_a_file_that_is_no_model_ends_it_with_a_word(tmp_path: Path):
    (tmp_path / "broken.gguf").write_bytes(b"nothing of use")
    with start(tmp_path / "broken.gguf", 0) as process:
        said = process.stdout.read()
        assert process.wait(5) == 1
    assert b"broken.gguf" in said


def test_without_the_package_it_says_which_extra_to_install(tmp_path: Path):
    (tmp_path / "xllamacpp.py").write_text("raise ImportError")
    code = "import runpy; runpy.run_module('serving.models.llama_cpp', run_name='__main__')"
    flags = Launch(tier="small", model=SMALL).command(tmp_path / "m.gguf", 1, 1)[3:]
    with subprocess.Popen(
        [sys.executable, "-c", code, *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"},
    ) as process:
        said = process.stdout.read()
        assert process.wait(5) == 1
    assert b"pip install 'cascade-router[models]'" in said
