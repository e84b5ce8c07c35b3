"""The page on the arithmetic of caches shows what its commands print."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from serving.cli import cascade

PAGE = (Path(__file__).parents[3] / "docs" / "cache-economics.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```\n\$ cascade (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "printed"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_page_shows_what_the_command_prints(command, printed):
    done = CliRunner().invoke(cascade, shlex.split(command))
    assert done.exit_code == 0
    assert done.output == printed


def test_the_page_shows_both_commands():
    assert {command.split()[1] for command, _ in SHOWN} == {"breakeven", "offload"}
