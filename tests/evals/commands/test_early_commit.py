"""On the committed outcomes of the embedded models and the shipped configuration."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cascade.errors import ConfigError
from evals.commands.judges import judges

ROOT = Path(__file__).parents[3]
CONFIG = str(ROOT / "examples" / "early_commit.yaml")


def run(*arguments, config=CONFIG):
    return CliRunner().invoke(
        judges, ["commit", "--config", config, *arguments], catch_exceptions=False
    )


@pytest.fixture(scope="module")
def told():
    result = run("--judge", "start", "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_commit_threshold_is_certified_apart_from_that_of_whole_answers(told):
    by_risk = {each["risk"]: each for each in told["certificates"]}
    assert by_risk["joint"]["labels"] == 157
    for risk in ("joint", "loss"):
        assert 0 < by_risk[risk]["at"] < 1
        assert by_risk[risk]["bound"] <= 0.05
        assert 0 < by_risk[risk]["released"] < 0.5
    assert by_risk["selective"]["at"] is None
    assert told["after_tokens"] == 24


def test_what_the_rule_does_is_told_from_rows_that_certified_nothing(told):
    done = told["effect"]
    assert done["rows"] == 230
    assert 0 < done["released"][0] <= done["long"][0] < 1
    assert done["wrong"][0] <= done["released"][0]
    (before, *_), (after, *_) = done["right"]
    assert done["lost"][0] == pytest.approx(before - after)
    assert done["sent_up"][1][0] <= done["sent_up"][0][0]


def test_it_ends_with_the_line_for_the_configuration(told):
    result = run("--judge", "start")
    at = next(each["at"] for each in told["certificates"] if each["risk"] == "joint")
    assert f"commit: {{after_tokens: 24, at: {at:g}, judge: start}}" in result.output
    assert "The rule loses" in result.output


def test_the_example_and_the_manual_say_what_the_command_says(told):
    at = next(each["at"] for each in told["certificates"] if each["risk"] == "joint")
    assert f"commit: {{after_tokens: 24, at: {at:g}, judge: start}}" in Path(CONFIG).read_text()
    manual = " ".join((ROOT / "docs" / "early-commit.md").read_text().split())
    printed = run("--judge", "start").output
    for shown in re.findall(r"\d\.\d{3} \(-?\d\.\d{3} to \d\.\d{3}\)", " ".join(printed.split())):
        assert shown in manual
    longer = " ".join(run("--judge", "likely", "--after", "48").output.split())
    assert (found := re.search(r"fit rows: (.*?)\. ", longer))
    assert found[1] in manual
    for each in told["certificates"]:
        assert each["reason"].partition(":")[0] in manual


def test_a_risk_that_cannot_be_certified_is_refused_in_words():
    result = run("--judge", "start", "--risk", "selective")
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert "No threshold is certified at which start releases anything (selective)" in words
    assert "commit: {" not in result.output


def test_too_few_labels_are_refused_with_how_many_it_takes():
    with pytest.raises(Exception, match=r"it takes 4603, \d+ more"):
        run("--judge", "start", "--alpha", "0.001", "--delta", "0.01")


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--policy", "always-small"), "no ladder 'always-small'"),
        (("--policy", "none"), "no ladder 'none'"),
        (("--judge", "none"), "no judge 'none'; there are:"),
        (("--judge", "well_formed"), "cannot look at an answer that is still growing"),
    ],
)
def test_what_is_not_there_or_cannot_look_is_refused(arguments, fault):
    with pytest.raises(ConfigError, match=fault):
        run(*arguments)
