"""Sentences as parts, so that they are decided once and can be said in more than one language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Union

Value = Union[str, "Clause", Sequence["Clause"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A part of a sentence, or all of it.

    Attributes:
        key: of its words, in ENGLISH or another language's.
        values: what is put into them: a text, another clause, or several of them.
    """

    key: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def told(self, words: Mapping[str, str]) -> str:
        """It in a language, whose words have the keys and the values' names of ENGLISH."""
        values = {name: _told(value, words) for name, value in self.values.items()}
        return words[self.key].format_map(values)


def clause(key: str, **values: Value) -> Clause:
    """A clause of that key with those values."""
    return Clause(key=key, values=values)


def _told(value: Value, words: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Clause):
        return value.told(words)
    return ", ".join(each.told(words) for each in value)


ENGLISH: Final[Mapping[str, str]] = {
    "verdict.sentence": "{costs}; {quality}: {so}",
    "verdict.more": (
        "about {units} more units whose quality is known would decide, if the difference stays as "
        "it is"
    ),
    "verdict.cost.unknown": "{arm}: cost not known yet",
    "verdict.cost.same": "{arm} costs the same [{low}, {high}]",
    "verdict.cost.less": "{arm} costs {percent} % less [{low}, {high}]",
    "verdict.cost.more": "{arm} costs {percent} % more [{low}, {high}]",
    "verdict.quality.unknown": "quality not known yet",
    "verdict.quality.feedback": "quality {points} points [{low}, {high}]",
    "verdict.quality.judge": "quality by {judge} {points} points [{low}, {high}]",
    "verdict.point": "{points} point",
    "verdict.points": "{points} points",
    "verdict.so.undecided": "not yet decided",
    "verdict.so.take": "it costs less and is not more than {margin} worse",
    "verdict.so.worse": "worse by more than {margin}",
    "verdict.so.drop": "it costs more and is not more than {margin} better",
    "verdict.so.dearer": "better and dearer, for you to weigh",
    "verdict.so.broken": (
        "the arms did not get their share of units, so none of this can be trusted"
    ),
    "verdict.early.cost": "too early, {units} more units whose cost is known are needed",
    "verdict.early.free": "the costs are not known, so nothing can be said",
    "verdict.early.quality": (
        "too early, {units} more units with a word on their quality are needed"
    ),
    "verdict.early.silent": (
        "nobody says how good the answers are: send feedback, or let a judge sample them"
    ),
    "doubt.shares": "the arms did not get their share of units (p = {p}): {arms}",
    "doubt.share": "{arm} {units} units for a share of {share}",
    "doubt.crossed": "units that were seen in two arms, and are left out: {units}",
    "doubt.unpriced": "requests whose cost is not known, and which are in no cost: {requests}",
}
"""The words of the commands; the page has them in its other languages."""
