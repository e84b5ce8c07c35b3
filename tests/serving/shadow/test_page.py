"""docs/shadow.md has every key of the block, with its default, and no other."""

import re
from pathlib import Path

from serving.config import Shadow

PAGE = (Path(__file__).parents[3] / "docs" / "shadow.md").read_text(encoding="utf-8")


def test_the_page_has_every_key_with_its_default():
    told = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", PAGE, re.MULTILINE))
    assert told == {name: shown(field) for name, field in Shadow.model_fields.items()}


def shown(field):
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    names = {"": "empty", "[]": "none"}
    return names.get(str(default), str(default).removesuffix(".0"))
