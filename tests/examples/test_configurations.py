"""The example configurations pass `cascade config check`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from serving.commands.config import config

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_can_work(path):
    result = CliRunner().invoke(config, ["check", "--config", str(path)])
    assert result.exit_code == 0, result.output
    assert f"{path.name} can work" in result.output.replace("\n", "")
    assert "warning" not in result.output


def test_there_are_examples():
    assert "utility" in {path.stem for path in EXAMPLES}
