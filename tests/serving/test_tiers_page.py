"""The page on tiers shows what works, and what the command prints."""

import re
from pathlib import Path

from click.testing import CliRunner

from serving.cli import cascade
from serving.tier_config import CoolDown, Limits, Retry

PAGE = (Path(__file__).parents[2] / "docs" / "tiers.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:yaml)?\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_can_work_and_costs_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "made up")
    file = tmp_path / "cascade.yaml"
    file.write_text(BLOCKS[0])
    done = CliRunner().invoke(cascade, ["config", "check", "--config", str(file)])
    assert done.exit_code == 0, done.exception
    printed = [line for line in done.output.splitlines() if line.startswith("  price ")]
    assert "\n".join(printed) + "\n" == BLOCKS[1]


def test_the_defaults_are_those_that_the_page_says():
    import yaml

    told = yaml.safe_load(BLOCKS[2])
    assert told["retry"] == Retry().model_dump()
    assert told["cooldown"] == CoolDown().model_dump()
    assert told["limits"] == Limits(concurrent=8).model_dump()
