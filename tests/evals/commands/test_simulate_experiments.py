import json

import pytest
from click.testing import CliRunner

from evals.commands.simulate_experiments import BEGIN, END
from serving.cli import cascade


def run(*arguments):
    return CliRunner().invoke(cascade, ["simulate", "experiments", "--runs", "20", *arguments])


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "results.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    return path


def test_tables_are_printed_and_written_between_the_marks(page):
    done = run("--write", str(page))
    assert done.exit_code == 0, done.exception
    assert "False alarms" in done.output
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n20 experiments of each kind")
    assert text.endswith(f"{END}\nafter\n")
    assert "| traffic | compared | false alarms |" in text
    assert "old" not in text


def test_programs_get_json():
    done = run("--json")
    found = json.loads(done.stdout)
    assert {each["lift"] for each in found} == {0.0, 0.03, -0.01, -0.02, -0.05, -0.1}
    assert {each["traffic"] for each in found} == {"conversations", "people"}
    assert all(each["experiments"] == 20 for each in found)
    assert all(each["found"].keys() == each["found_by_naive_interval"].keys() for each in found)
