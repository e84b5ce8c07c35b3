"""What vLLM's own code says of what Cascade says about it."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.compatibility.chat import CHAT

GIVEN = ("--weights", "smol", "--tool-call-parser", "hermes", "--lora", "big-ft=lora")


@pytest.fixture(scope="module")
def told(vllm, service):
    """vLLM's answer on the lines of two tiers, and on one that is wrong."""
    lines = [
        shlex.split(service.run("models", "command", tier, *GIVEN)) for tier in ("small", "big")
    ]
    assert {line[0] for line in lines} == {"vllm"}
    asked = [*(line[1:] for line in lines), [*lines[0][1:], "--no-such-option"]]
    done = subprocess.run(
        [
            str(vllm.folder() / "v" / "bin" / "python"),
            str(Path(__file__).with_name("ask_vllm.py")),
            json.dumps(asked),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_its_parser_reads_the_printed_line_as_it_was_meant(vllm, told):
    small, big, wrong = told["lines"]
    assert small == ["smol", ["small"], vllm.SMALL_PORT, None]
    assert big == ["smol", ["big"], vllm.BIG_PORT, 4096]
    assert wrong is None


def test_each_field_of_its_api_has_its_row_in_the_compatibility_table(told):
    probed = {name for case in CHAT.cases for name in case.adds | case.beside}
    assert set(told["fields"]) - probed == {"model"}
