import json
import shlex
import sys

import pytest
from click.testing import CliRunner

from serving.cli import cascade

TIERS = """\
tiers:
  own:
    backend: openai_http
    launch: {engine: llama_cpp, model: qwen2.5-coder-0.5b, port: 8101, threads: 2}
  mine: {backend: openai_http, launch: {engine: llama_cpp, model: /models/mine.gguf}}
  big:
    backend: openai_http
    url: http://127.0.0.1:8001/v1
    model: big
    capabilities: [tools]
  bad: {backend: openai_http, url: nowhere, model: x}
  api: {backend: litellm_api, model: anthropic/claude-sonnet-4-6}
  told: {backend: scripted}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_HOME", str(tmp_path / "home"))
    file = tmp_path / "cascade.yaml"
    file.write_text(TIERS)

    def invoke(*arguments):
        return CliRunner().invoke(cascade, ["models", "command", "--config", str(file), *arguments])

    return invoke


def test_the_line_alone_is_on_standard_output_and_advice_on_standard_error(run):
    done = run("big")
    assert done.exit_code == 0
    [line] = done.stdout.splitlines()
    assert shlex.split(line)[:2] == ["vllm", "serve"]
    assert "replace TOOL_CALL_PARSER" in done.stderr


def test_what_the_configuration_does_not_know_is_given_on_the_command_line(run):
    done = run(
        *("big", "--weights", "/m", "--tool-call-parser", "hermes", "--gpus", "2"),
        *("--lora", "a=/a", "--", "--seed", "7"),
    )
    assert done.stderr == ""
    words = shlex.split(done.stdout)
    assert words[2] == "/m"
    assert words[-5:] == ["--enable-lora", "--lora-modules", "a=/a", "--seed", "7"]
    assert words[words.index("--tool-call-parser") + 1] == "hermes"
    assert words[words.index("--tensor-parallel-size") + 1] == "2"


def test_json_has_the_same_line_and_its_parts(run):
    report = json.loads(run("big", "--json").stdout)
    assert shlex.split(report["shell"]) == report["arguments"]
    assert "TOOL_CALL_PARSER" in report["placeholders"]


def test_a_launched_tiers_line_is_the_one_that_cascade_runs(run, tmp_path):
    done = run("own")
    file = tmp_path / "home" / "models" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    words = shlex.split(done.stdout)
    assert words[:3] == [sys.executable, "-m", "serving.models.llama_cpp"]
    assert words[words.index("--model") + 1] == str(file)
    assert words[words.index("--port") + 1] == "8101"
    assert words[words.index("--threads") + 1] == "2"
    assert "cascade models pull qwen2.5-coder-0.5b" in done.stderr
    assert "/models/mine.gguf" in shlex.split(run("mine").stdout)


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        ("nobody", "there is no tier 'nobody'; there are: own, mine, big"),
        ("api", "tiers.api.backend: litellm_api asks no server"),
        ("told", "tiers.told.backend: scripted asks no server"),
        ("bad", "cascade.yaml:11: tiers.bad.url: 'nowhere' is no address"),
    ],
)
def test_a_tier_that_nothing_here_can_serve_is_refused_by_name(run, tier, said):
    done = run(tier)
    assert done.exit_code == 1
    assert said in done.exception.message
