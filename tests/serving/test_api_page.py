"""docs/api.md names everything that the HTTP surface offers."""

from pathlib import Path

import pytest

from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from serving import present
from serving.control import Control
from serving.explain import explanation
from tests.builders import attempt, request, result

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("field", Control.model_fields)
def test_the_page_has_every_field_of_control_with_its_header(field):
    assert f"| `{field}` | `x-cascade-{field.replace('_', '-')}` |" in PAGE


def test_the_page_has_every_header_of_an_answer():
    arm = Arm(name="a", policy=FixedPolicy(name="p", tier="small"), experiment="e")
    estimated = result(attempts=(attempt(usage_estimated=True),))
    headers = present.early_headers(request(), arm) | present.late_headers(estimated)
    for name in headers:
        assert f"`{name}`" in PAGE or f"`-{name.removeprefix('x-cascade-')}`" in PAGE, name


def test_the_page_shows_every_key_of_an_explanation():
    told = explanation(result())
    for key in (*told, *told["attempts"][0], *told["attempts"][0]["tokens"]):
        assert f'"{key}":' in PAGE, key
