"""Which column of a table is what: said on the command line, or read from the columns' names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cascade.errors import CascadeError
from classifiers.features import TAG

SINGLE: Final = ("id", "prompt", "group", "kind", "session", "split")
"""What there is one of for each row."""

MEASURES: Final = ("quality", "cost", "judged", "judge_cost", "predicted")
"""What there is for each tier: its column is called `MEASURE.TIER` unless another is named."""

SHARES: Final = ("quality", "judged", "predicted")
"""Measures that lie between 0 and 1."""

TOKENS: Final = ("input", "cache_read", "output")
"""Tokens of a tier's answer, from which its cost comes where none is stated."""

TIER: Final = "tier"
"""The column that names a row's tier, in a table with a row for each answer."""

QUALITY: Final = "quality"
OF_A_TIER: Final = (*MEASURES, *TOKENS)


class TableError(CascadeError):
    """A table cannot be used; says which file, row and column, and why."""

    code = "invalid_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column is what.

    Attributes:
        tiers: the column of the quality by tier, from the cheapest to the best; none: they are
            found by their names.
        others: column by one of SINGLE, by `MEASURE.TIER`, and by `tag.NAME`.
    """

    tiers: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """The column of that name's content."""
        return self.others.get(name, name)


def columns(pairs: Sequence[str]) -> Columns:
    """The mapping that texts such as "prompt=question" and "small=weak" stand for.

    A name that is neither one of SINGLE nor `MEASURE.TIER` nor `tag.NAME` is a tier's, and its
    column holds the quality.

    Raises:
        TableError: one is no such text, or says a name twice.
    """
    tiers: dict[str, str] = {}
    others: dict[str, str] = {}
    for pair in pairs:
        name, is_pair, column = pair.partition("=")
        if not name or not is_pair or not column:
            raise TableError(f"{pair!r} is not NAME=COLUMN, as prompt=question or small=weak")
        name = name.removeprefix(f"{QUALITY}.")
        known = others if _is_other(name) else tiers
        if known.setdefault(name, column) != column:
            raise TableError(f"{name} is given two columns: {known[name]} and {column}")
    return Columns(tiers=tiers, others=others)


def measure_of(name: str) -> tuple[str, str] | None:
    """The measure and the tier of a name such as "cost.small"; None for any other name."""
    measure, is_pair, tier = name.partition(".")
    return (measure, tier) if is_pair and tier and measure in OF_A_TIER else None


def _is_other(name: str) -> bool:
    single = (*SINGLE, TIER, *OF_A_TIER)
    return name in single or name.startswith(TAG) or measure_of(name) is not None
