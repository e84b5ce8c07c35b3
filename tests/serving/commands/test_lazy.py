import sys

import click
import pytest
from click.testing import CliRunner

from serving.cli import COMMANDS, cascade
from serving.commands.lazy import LazyGroup


def test_help_lists_every_command_in_order_without_importing_one():
    before = set(sys.modules)
    output = CliRunner().invoke(cascade, ["--help"]).output
    assert [line.split()[0] for line in output.partition("Commands:")[2].split("\n") if line] == [
        *COMMANDS
    ]
    assert not [name for name in set(sys.modules) - before if name.startswith("evals.commands")]


def test_a_command_whose_package_is_not_installed_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "needs_sklearn.py").write_text("import sklearn.not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    group = LazyGroup(name="g", lazy={"fit": ("needs_sklearn:fit", "Fit.")})
    result = CliRunner().invoke(group, ["fit"])
    assert result.exit_code == 1
    assert "pip install 'cascade-router[fit]'" in result.output


def test_a_module_of_our_own_that_is_missing_is_a_bug_and_not_advice(tmp_path):
    group = LazyGroup(name="g", lazy={"gone": ("serving.commands.gone:gone", "Gone.")})
    with pytest.raises(ModuleNotFoundError):
        CliRunner().invoke(group, ["gone"], catch_exceptions=False)


def test_an_unknown_command_is_a_usage_error():
    result = CliRunner().invoke(cascade, ["fly"])
    assert (result.exit_code, "No such command 'fly'" in result.output) == (
        click.UsageError.exit_code,
        True,
    )
