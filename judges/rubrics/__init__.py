"""The rubrics that come with Cascade for judging answers."""

from pathlib import Path
from typing import Final

from cascade.asking import rubric
from cascade.asking.rubric import Rubric

FOLDER: Final = Path(__file__).parent


def load(name: str, base: Path) -> Rubric:
    """A rubric by the name of one of these, or by the path of a file.

    Args:
        name: "quality", or "rubrics/ours.md".
        base: folder that relative paths start from.

    Raises:
        ConfigError: there is no such file, or it is no rubric.
    """
    return rubric.load(name, base, FOLDER)
