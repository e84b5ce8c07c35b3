"""Which rows a policy is fitted on, chosen on and reported on.

A figure that was read off the rows a threshold was chosen on flatters the threshold, so every row
is in one of three parts, and rows that are alike are in the same one.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evals.tables.columns import TableError

FIT, CHOOSE, TEST = "fit", "choose", "test"
SPLITS: Final = (FIT, CHOOSE, TEST)

NAMES: Final[Mapping[str, str]] = {
    "fit": FIT,
    "train": FIT,
    "choose": CHOOSE,
    "calibrate": CHOOSE,
    "valid": CHOOSE,
    "validation": CHOOSE,
    "dev": CHOOSE,
    "test": TEST,
    "show": TEST,
}
"""What a table's own column of splits may say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """Draws a group's part by a hash of its name, so that it is the same in every run.

    Attributes:
        fit: the share of groups to fit on.
        choose: the share to choose on; the rest is the test.
        seed: another one draws other parts.
    """

    fit: float = 0.5
    choose: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.fit >= 0 and self.choose >= 0 and self.fit + self.choose <= 1):
            raise TableError(
                f"shares of rows: {self.fit:g} to fit and {self.choose:g} to choose are no parts "
                "of all"
            )

    def of(self, group: str) -> str:
        """The part of a group, one of SPLITS."""
        hashed = hashlib.blake2b(f"{self.seed}:{group}".encode(), digest_size=8).digest()
        drawn = int.from_bytes(hashed) / 2**64
        if drawn < self.fit:
            return FIT
        return CHOOSE if drawn < self.fit + self.choose else TEST
