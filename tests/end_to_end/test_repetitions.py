"""The real command with scripted models: what outlives a killed service."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.end_to_end.processes import CascadeProcess

CONFIG = """
server: {idempotency: {mib: %d}}
tiers:
  small: {backend: scripted, answers: [four], price: {input: 1, cache_read: 0.1, output: 2}}
policies:
  cascade: {type: fixed, tier: small}
"""


@pytest.fixture
def serve(tmp_path: Path):
    started = []

    def start(mib: int) -> CascadeProcess:
        config = tmp_path / "cascade.yaml"
        config.write_text(CONFIG % mib)
        cascade = CascadeProcess(config, CASCADE_HOME=str(tmp_path / "home"))
        started.append(cascade)
        cascade.start()
        return cascade

    yield start
    for cascade in started:
        cascade.stop()


def post(cascade: CascadeProcess, path: str, **body: object):
    request = urllib.request.Request(
        f"{cascade.url}{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "idempotency-key": "k1"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response), dict(response.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error), dict(error.headers)


def ask(cascade: CascadeProcess):
    messages = [{"role": "user", "content": "what is 2+2?"}]
    return post(cascade, "/v1/chat/completions", model="cascade", messages=messages)


def test_a_killed_service_neither_pays_twice_nor_forgets_feedback(serve) -> None:
    cascade = serve(64)
    status, answer, _ = ask(cascade)
    assert status == 200
    assert ask(cascade)[2]["x-cascade-idempotent-replay"] == "true"
    status, told, _ = post(cascade, "/v1/feedback", request_id=answer["id"], correction="4")
    assert (status, told["stored"]) == (200, True)
    cascade.stop(signal.SIGKILL)
    cascade.start()
    status, refused, _ = ask(cascade)
    assert (status, refused["error"]["code"]) == (409, "idempotency_answer_gone")
    shown = json.loads(cascade.run("audit", "show", told["request_id"], "--json"))
    assert [said["correction"] for said in shown["feedback"]] == ["4"]
    assert json.loads(cascade.run("audit", "stats", "--json"))["requests"] == 1


def test_how_much_is_kept_is_configured(serve) -> None:
    cascade = serve(0)
    assert ask(cascade)[0] == 200
    assert ask(cascade)[0] == 409
