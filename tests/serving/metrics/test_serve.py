"""The command serves metrics unless the configuration says that it is not to."""

import urllib.error
import urllib.request

import pytest

from serving.config import ConfigFile
from serving.tier_wiring import kv_bytes_per_token
from tests.end_to_end.processes import CascadeProcess
from tests.metrics import Read
from tests.serving.test_config import GOOD


@pytest.fixture
def started(tmp_path):
    running = []

    def start(text):
        config = tmp_path / "cascade.yaml"
        config.write_text(text)
        running.append(CascadeProcess(config, CASCADE_HOME=str(tmp_path / "home")))
        running[-1].start()
        return running[-1]

    yield start
    for each in running:
        each.stop()


def scraped(service):
    with urllib.request.urlopen(f"{service.url}/metrics", timeout=60) as response:
        return Read(response.read())


def test_they_are_on_by_default_and_count_what_is_asked(started):
    service = started(GOOD)
    assert service.ask("always-large", "what is 2+2?")[0] == 200
    told = scraped(service)
    assert told("requests_total", experiment="", policy="always-large", status="ok") == 1
    assert told("prefill_tokens_total", tier="large") == 10
    assert told("tier_ready", tier="small") == 1
    assert told("audit_dropped_total") == 0


def test_they_can_be_turned_off(started):
    service = started(f"server: {{metrics: false}}\n{GOOD}")
    assert service.ask("always-large", "what is 2+2?")[0] == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        scraped(service)
    with refused.value as error:
        assert error.code == 404


def test_a_tokens_bytes_are_known_of_launched_models_that_are_fetched_by_name(tmp_path):
    launch = "{{backend: openai_http, launch: {{engine: llama_cpp, model: {}}}}}"
    path = tmp_path / "cascade.yaml"
    path.write_text(
        "tiers:\n"
        f"  named: {launch.format('qwen2.5-coder-0.5b')}\n"
        f"  file: {launch.format('/models/own.gguf')}\n"
        "  other: {backend: scripted}\n"
    )
    assert kv_bytes_per_token(ConfigFile(path).config) == {"named": 12_288}
