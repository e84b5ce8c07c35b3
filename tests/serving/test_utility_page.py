"""The page on the utility policy says what the policy takes, and reckons right."""

import inspect
import re
from pathlib import Path

import pytest
import yaml

from cascade.policies.utility import UtilityPolicy
from serving.config import Policy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "utility.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)
OPTIONS = {name: default.strip() for name, default in ROWS}


def test_every_option_is_in_the_table_with_its_default():
    takes = inspect.signature(UtilityPolicy).parameters
    assert OPTIONS.keys() == (takes.keys() | Policy.model_fields.keys()) - {"name", "type"}
    for name, option in takes.items():
        if isinstance(option.default, float):
            assert float(OPTIONS[name]) == option.default
        elif isinstance(option.default, str):
            assert OPTIONS[name] == f"`{option.default}`"


def test_the_policy_shown_is_the_example_s():
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    example = yaml.safe_load((ROOT / "examples" / "utility.yaml").read_text())
    assert yaml.safe_load(shown)["policies"] == example["policies"]


def test_the_numbers_of_the_example_belong_together():
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| large | 0.000279")]
    quoted, credit, price = map(float, re.findall(r"0\.\d+", row)[:3])
    assert quoted - credit == pytest.approx(price)
    worth, right, in_hand = (
        float(re.search(pattern, row)[1])
        for pattern in (r"worth \$(\S+),", r"right with (\S+) for", r"hand is worth \$(\S+) ")
    )
    assert worth == pytest.approx(0.0004 * right - price, abs=3e-7)
    assert worth / 0.0004 == pytest.approx(0.458, abs=5e-4)
    assert in_hand == pytest.approx(0.0004 * 0.384, abs=3e-7)
