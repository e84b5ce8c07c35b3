"""What a model answers with one label: the probability of each, or the one that it wrote."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cascade.types import Completion, Json

LEAST_MASS = 0.05
"""Of the probability that must be on labels; below it the model is answering something else."""


@dataclass(frozen=True, slots=True)
class LabelReading:
    """A model's answer.

    Attributes:
        probabilities: by label, summing to 1.
        mass: how much of the model's probability was on labels; None when it told none.
    """

    probabilities: Mapping[str, float]
    mass: float | None


def read_label(completion: Completion, labels: Sequence[str]) -> LabelReading | None:
    """Probabilities where the model reports them, else the label that it wrote; None for neither.

    The first token that is not white space counts. Tokens that differ in case or in spaces around
    them are one label; a token that is no label is left out and the rest scaled up.
    """
    for entry in completion.logprobs or ():
        if str(entry.get("token") or "").strip():
            return _from_entry(entry, labels) or _from_text(completion.text, labels)
    return _from_text(completion.text, labels)


def _from_entry(entry: Json, labels: Sequence[str]) -> LabelReading | None:
    masses = dict.fromkeys(labels, 0.0)
    by_token = {label.casefold(): label for label in labels}
    for other in entry.get("top_logprobs") or ():
        label = by_token.get(_plain(str(other.get("token") or "")))
        logprob = other.get("logprob")
        if label is not None and isinstance(logprob, int | float) and logprob <= 0:
            masses[label] += math.exp(logprob)
    mass = sum(masses.values())
    if mass < LEAST_MASS:
        return None
    return LabelReading({label: m / mass for label, m in masses.items()}, min(1.0, mass))


def _from_text(text: str, labels: Sequence[str]) -> LabelReading | None:
    words = text.split()
    first = _plain(words[0]) if words else ""
    for label in labels:
        if label.casefold() == first:
            return LabelReading({name: float(name == label) for name in labels}, None)
    return None


def _plain(token: str) -> str:
    return token.strip().strip("*`\"'.:,()[]").casefold()
