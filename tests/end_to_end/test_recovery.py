"""A model server that comes back ends the cool-down that its end had begun."""

import json
import os
import signal
import time

import pytest

from serving.models.catalogue import lookup
from serving.models.fetch import ensure
from serving.models.home import home
from tests.end_to_end.processes import CascadeProcess, wait_for
from tests.real_models import SMALL

pytestmark = pytest.mark.real_models

COOL_SECONDS = 600
CONFIG = f"""\
tiers:
  small:
    backend: openai_http
    launch: {{engine: llama_cpp, model: {SMALL}, context: 512, slots: 1}}
    retry: null
    cooldown: {{min_calls: 2, seconds: {COOL_SECONDS}, max_seconds: {COOL_SECONDS}}}
"""


@pytest.fixture
def served(tmp_path):
    (tmp_path / "cascade.yaml").write_text(CONFIG)
    models = ensure(lookup(SMALL), home()).parent
    process = CascadeProcess(
        tmp_path / "cascade.yaml",
        CASCADE_HOME=str(tmp_path / "home"),
        CASCADE_MODELS_DIR=str(models),
    )
    process.start()
    yield process
    process.stop()


def ask(served):
    status, body, _ = served.ask("small", "Say hello.", max_tokens=1)
    return status, json.dumps(body)


def test_a_tier_is_asked_again_as_soon_as_its_server_is_back(served):
    assert ask(served)[0] == 200
    [run_file] = (served.config.parent / "home" / "run").glob("*.json")
    os.kill(json.loads(run_file.read_text())["pid"], signal.SIGKILL)
    began = time.monotonic()
    wait_for(lambda: "cooling down" in ask(served)[1], 60, served.said)
    wait_for(lambda: served.get("/readyz")[1]["status"] == "ready", 120, served.said)
    assert ask(served)[0] == 200
    assert time.monotonic() - began < COOL_SECONDS
