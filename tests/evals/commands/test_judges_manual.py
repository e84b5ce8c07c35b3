"""The manual says what the commands print: on the committed outcomes and the shipped panel."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from evals.commands.judges import judges
from evals.commands.judges_show import BLOCK, said
from evals.outcomes import OutcomesError
from judges.fitted import load_model

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "judges.md").read_text()
BLOCKS = {found["command"]: found["printed"] for found in BLOCK.finditer(MANUAL)}
ARTIFACTS = ROOT / "judges" / "artifacts"


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("command", sorted(BLOCKS))
def test_every_figure_of_the_manual_is_printed_by_its_command(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    try:
        printed = lines(said(judges, command))
    except OutcomesError as error:
        pytest.skip(f"the committed outcomes lack what is measured: {error.message}")
    assert len(printed) > 4
    stated = set(lines(BLOCKS[command]))
    assert [line for line in printed if line not in stated] == []


def test_the_table_of_judges_has_the_ranks_below_it():
    ranks = [line.split("|") for line in lines(BLOCKS["rank --config examples/panel_asking.yaml"])]
    table = MANUAL[: MANUAL.index("<!-- cascade judges rank")]
    for _, name, answers, area, *_ in ranks[2:]:
        if name.strip() != "compared":  # of which there are few, so that the table leaves it out
            assert f"{float(area):.3f} ({answers.strip()})".removeprefix("0") in table


def test_the_table_of_judges_has_the_panel():
    metrics = load_model(ARTIFACTS / "sound.json").manifest.metrics
    assert f"| {metrics['auc'][0]:.3f} ({metrics['n']}) |".replace("| 0.", "| .") in MANUAL


def test_the_example_has_the_threshold_that_was_chosen():
    for example, name in (("panel", "sound"), ("panel_asking", "sound-asking")):
        config = (ROOT / "examples" / f"{example}.yaml").read_text()
        chosen = json.loads((ARTIFACTS / f"{name}.json").read_text())
        at = chosen["manifest"]["metrics"]["ladder"]["accept_at"]
        assert re.findall(r"accept_at: ([\d.]+)\}", config) == [f"{at:g}"]


def test_a_manual_is_written_anew_between_its_marks_only(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    path = tmp_path / "manual.md"
    mark = "<!-- cascade judges show --config examples/panel.yaml -->\n"
    path.write_text(f"before\n{mark}old\n<!-- end -->\nafter\n")
    result = CliRunner().invoke(judges, ["manual", str(path)], catch_exceptions=False)
    assert result.exit_code == 0
    text = path.read_text()
    assert text.startswith(f"before\n{mark}")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "| the panel |" in text
    assert "old" not in lines(text)


def test_a_manual_starts_no_command_that_does_more_than_print(tmp_path):
    path = tmp_path / "manual.md"
    text = "<!-- cascade judges fit --out x -->\nold\n<!-- end -->\n"
    path.write_text(text)
    result = CliRunner().invoke(judges, ["manual", str(path)])
    assert result.exit_code == 1
    assert "fit is not one of rank, show" in result.output
    assert path.read_text() == text
