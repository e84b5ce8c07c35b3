import json

import pytest
from click.testing import CliRunner

from evals.commands.eval_compare import compare
from tests.evals.choice.made import lines, made

SHAPE = ["--column", "small=small", "--column", "large=large"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "outcomes.jsonl"
    found = made(1_000)
    path.write_text(lines(made(1_000, prompts=["[/b] [red] sum"] * len(found))))
    return str(path)


def ran(*given):
    result = CliRunner().invoke(compare, [*given, *SHAPE], catch_exceptions=False)
    assert result.exit_code == 0
    return result


def printed(result):
    return " ".join(result.output.split())


def test_it_says_which_is_better_and_what_it_costs(table):
    said = printed(ran(table, "always:small", "always:large"))
    assert "always:small is worse than always:large by" in said
    assert "it costs 10% of always:large's price" in said
    assert "400 test prompts of 400 groups" in said


def test_it_says_what_cannot_be_told_apart(table):
    assert "cannot be told apart" in printed(ran(table, "cascade", "utility"))


def test_it_says_on_which_rows_a_setting_was_chosen(table):
    said = printed(ran(table, "cascade", "always:large"))
    assert "was chosen on 400 choose rows, none of which is among the test rows" in said


def test_the_same_policy_is_as_good_as_itself(table):
    said = printed(ran(table, "cascade:0.5", "cascade:0.5"))
    assert "is as good as cascade:0.5 on every draw of these prompts" in said
    assert "On 400 of 400 prompts the same tier answers; 0 differ" in said


def test_prompts_are_shown_as_they_are_and_as_many_as_wanted(table):
    result = ran(table, "cascade:0.5", "always:large", "--limit", "3")
    assert result.output.count("[/b] [red] sum") == 3
    assert "where they differ most" in result.output
    none = ran(table, "cascade:0.5", "always:large", "--limit", "0")
    assert "where they differ most" not in none.output


def test_it_prints_json_for_machines(table):
    found = json.loads(ran(table, "cascade", "always:large", "--json", "--limit", "2").stdout)
    one, other = found["policies"]
    assert found["quality_difference"]["value"] == pytest.approx(one["quality"] - other["quality"])
    assert one["chosen"]
    assert other == {**other, "setting": None, "chosen": False}
    assert len(found["prompts"]) == 2
    assert found["prompts"][0]["quality"] in ([1.0, 0.0], [0.0, 1.0])
