"""The question that a model is asked about a text, and the labels that it may answer with.

A rubric is a text file. Its first line is like `labels: no yes`, the labels from worst to best,
each one token of the model's. The second is like `ask: Is the answer correct?`, the question that
is put last. The rest tells the model in plain words what the labels mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cascade.errors import ConfigError

_LABELS: Final = "labels:"
_ASK: Final = "ask:"
_FEWEST_LABELS: Final = 2


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a model is told.

    Attributes:
        labels: from worst to best.
        ask: the question that is put last.
        text: what the labels mean.
    """

    labels: tuple[str, ...]
    ask: str
    text: str

    def worth(self, label: str) -> float:
        """The score of a label: evenly from 0 for the worst to 1 for the best."""
        return self.labels.index(label) / (len(self.labels) - 1)

    def expected(self, probabilities: Mapping[str, float]) -> float:
        """The score to expect of labels with these probabilities, in [0, 1]."""
        return min(1.0, sum(p * self.worth(label) for label, p in probabilities.items()))


def load(name: str, base: Path, own: Path) -> Rubric:
    """A rubric by the name of one that comes with Cascade, or by the path of a file.

    Args:
        name: "quality", or "rubrics/ours.md".
        base: folder that relative paths start from.
        own: folder of those that come with Cascade.

    Raises:
        ConfigError: there is no such file, or it is no rubric.
    """
    shipped = own / f"{name}.md"
    path = shipped if "/" not in name and shipped.exists() else base / name
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(file.stem for file in own.glob("*.md")))
        raise ConfigError(
            f"the rubric {name!r} cannot be read ({error}); name a file, or one of {known}",
            param="rubric",
        ) from None
    first, second, *rest = [*lines, "", ""]
    labels, ask = tuple(first.removeprefix(_LABELS).split()), second.removeprefix(_ASK).strip()
    distinct = {label.casefold() for label in labels}
    if not first.startswith(_LABELS) or len(distinct) < max(_FEWEST_LABELS, len(labels)):
        raise ConfigError(
            f"the rubric {path} must begin with a line like `labels: no yes`, of different labels",
            param="rubric",
        )
    if not second.startswith(_ASK) or not ask:
        raise ConfigError(
            f"the rubric {path} needs a second line like `ask: Is the answer correct?`",
            param="rubric",
        )
    text = "\n".join(rest).strip()
    if not text:
        raise ConfigError(f"the rubric {path} says nothing after its first lines", param="rubric")
    return Rubric(labels, ask, text)
