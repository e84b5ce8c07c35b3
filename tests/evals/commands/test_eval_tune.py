import json

import pytest
import yaml
from click.testing import CliRunner

from cascade.errors import ConfigError
from evals.choice.goals import ChoiceError
from evals.commands.eval_tune import tune
from tests.evals.choice.made import lines, made

SHAPE = ["--column", "small=small", "--column", "large=large"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "outcomes.jsonl"
    path.write_text(lines(made(1_000)))
    return str(path)


def ran(*given):
    return CliRunner().invoke(tune, [*given, *SHAPE])


def printed(result):
    return " ".join(result.output.split())


def test_it_ends_with_what_can_be_said_and_the_block(table):
    result = ran(table, "--policy", "cascade", "--quality-at-least", "0.95")
    assert result.exit_code == 0
    said = printed(result)
    assert "With probability 0.9 the quality is at least 0." in said
    assert "So the quality is at least 0.95 of that of always:large." in said
    assert "it leaves no room" in said
    steps = yaml.safe_load(result.output.partition("policies:\n")[2])["tuned"]["steps"]
    assert steps[0]["judge"] == "sound"
    assert steps[1] == {"tier": "large"}


def test_it_prints_json_and_nothing_else(table):
    result = ran(table, "--policy", "cascade", "--budget", "0.0004", "--json")
    found = json.loads(result.stdout)
    assert found["chosen"]["cost"] <= 0.0004
    assert found["tested"]["rows"] == 400
    assert found["claim"]["quality"] > 0.8
    assert found["block"]["type"] == "ladder"
    assert found["refusal"] == ""


def test_a_claim_that_the_rows_do_not_carry_is_refused_and_nothing_is_written(tmp_path):
    path, out = tmp_path / "few.jsonl", tmp_path / "tuned.yaml"
    path.write_text(lines(made(250, seed=1)))
    asked = ("--policy", "cascade", "--quality-at-least", "0.98", "--write", str(out))
    result = ran(str(path), *asked)
    assert isinstance(result.exception, ChoiceError)
    assert "100 test rows of 100 groups cannot show" in result.exception.message
    assert "more, which at this split is" in result.exception.message
    assert not out.exists()


def test_the_block_is_written_with_where_it_comes_from(table, tmp_path):
    out = tmp_path / "tuned.yaml"
    asked = ("--max-regret", "0.05", "--estimator", "looks", "--name", "thrifty")
    result = ran(table, *asked, "--write", str(out))
    assert result.exit_code == 0, result.exception
    text = out.read_text()
    assert "  # tuned: chosen on 400 rows of outcomes.jsonl, tested on 400 others" in text
    assert yaml.safe_load(text)["policies"]["thrifty"]["estimator"] == "looks"


def test_a_block_that_the_configuration_cannot_have_is_refused(table, tmp_path):
    out = tmp_path / "cascade.yaml"
    out.write_text(
        "tiers:\n  only: {backend: scripted}\npolicies:\n  one: {type: fixed, tier: only}\n"
    )
    asked = ("--policy", "cascade", "--max-regret", "0.05", "--write", str(out))
    assert isinstance(ran(table, *asked).exception, ConfigError)
    assert "tuned" not in out.read_text()


def test_whose_predictions_they_are_must_be_said_before_anything_is_written(table, tmp_path):
    result = ran(table, "--max-regret", "0.05", "--write", str(tmp_path / "tuned.yaml"))
    assert "say whose by --estimator" in result.exception.message


def test_a_policy_that_cannot_be_run_is_tuned_all_the_same_without_a_block(table):
    result = ran(table, "--policy", "uplift", "--max-regret", "0.05")
    assert result.exit_code == 0
    assert "no policy of the service decides as uplift does" in printed(result)


@pytest.mark.parametrize("given", [[], ["--budget", "1", "--max-regret", "0.1"]])
def test_one_goal_is_given(table, given):
    result = ran(table, *given)
    assert result.exit_code == 2
    assert "give one of --budget, --quality-at-least and --max-regret" in printed(result)


def test_twice_the_same_prints_the_same(table):
    asked = (table, "--policy", "utility", "--max-regret", "0.05", "--json")
    assert ran(*asked).stdout == ran(*asked).stdout


def test_stricter_settings_are_only_proposed_where_they_were_not_tried(tmp_path):
    path = tmp_path / "few.jsonl"
    path.write_text(lines(made(120, seed=1)))
    asked = (str(path), "--policy", "cascade", "--quality-at-least", "0.99")
    assert "--candidates 8" in ran(*asked).exception.message
    assert "--candidates 8" not in ran(*asked, "--candidates", "3").exception.message


def test_a_policy_without_a_setting_is_told_as_what_it_is(table):
    result = ran(table, "--policy", "always:large", "--quality-at-least", "0.95")
    assert "always:large\n" in result.output.replace(" ", "")
    assert yaml.safe_load(result.output.partition("policies:\n")[2])["tuned"] == {
        "type": "fixed",
        "tier": "large",
    }
