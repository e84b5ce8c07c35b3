"""The house limits on size. Rules that matter are tests."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in (
        *("cascade", "judges", "classifiers", "serving", "evals", "migrations"),
        *("examples", "benchmarks", "tests"),
    )
    for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400, "a file of over 400 lines is more than one thing"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < 50, f"{node.name} is over 50 lines"
