"""docs/experiments.md names every key, command and endpoint, and its example can work."""

import re
from pathlib import Path

import pytest

from serving.admin.routes import router
from serving.commands.experiment import COMMANDS
from serving.experiment_config import Experiment, Layer
from tests.serving.test_config import GOOD, wired

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", [*Experiment.model_fields, "holdout"])
def test_the_page_has_every_key(key):
    assert re.search(rf"^\| .*`{key}`.* \|", PAGE, re.MULTILINE) or f"`{key}`" in PAGE


def test_the_example_can_work(tmp_path):
    example = PAGE.partition("```yaml\n")[2].partition("```")[0]
    snapshot = wired(tmp_path, GOOD[: GOOD.index("experiments:")] + example)
    assert snapshot.experiments["auto"].covers == ("cascade",)
    assert snapshot.experiments["auto"].layer.held_out == 0.05
    assert Layer.model_fields.keys() == {"salt", "holdout"}


@pytest.mark.parametrize("route", router.routes, ids=lambda route: route.path)
def test_the_page_has_every_endpoint(route):
    assert route.path.replace(":path", "") in PAGE
    assert all(f"`{method}" in PAGE for method in route.methods)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "results"])
def test_the_page_has_every_command(name):
    assert f"cascade experiment {name}" in PAGE
