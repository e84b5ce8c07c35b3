"""What importing must not load, measured in a fresh interpreter."""

import subprocess
import sys

import pytest

HEAVY = (
    "litellm",
    "torch",
    "sklearn",
    "pydantic",
    "fastapi",
    "sqlalchemy",
    "vllm",
    "aiohttp",
    "yaml",
)


def loaded_by(code):
    report = f"{code}; import sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "module",
    ["cascade.engine", "cascade.audit", "cascade.snapshot", "cascade.backends.scripted"],
)
def test_the_domain_loads_the_standard_library_only(module):
    assert not loaded_by(f"import {module}").intersection(HEAVY)


def test_the_commands_help_loads_no_command():
    loaded = loaded_by(
        "from serving.cli import cascade; cascade(['--help'], standalone_mode=False)"
    )
    assert not loaded.intersection(HEAVY)
